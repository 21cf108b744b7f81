-- Lists the jobs that redrives made of a job's dead letters, the newest first, at most 10: the audit tells. Reads by audit_target. No locks.
SELECT (a.after ->> 'job')::bigint FROM pelton.audit a WHERE a.target = $1::bigint::text AND a.action = 'dead.redrive' ORDER BY a.at DESC, a.id DESC LIMIT 10
