DROP VIEW pelton.audit_trail;
CREATE VIEW pelton.audit_trail AS
    SELECT a.id, a.at, concat_ws(' as ', a.actor, a.role) AS who, a.actor, a.role, a.action, a.target,
        CASE WHEN a.target ~ '^[0-9]{1,18}$' THEN a.target::bigint END AS job_id, a.before, a.after
    FROM pelton.audit a;

COMMENT ON VIEW pelton.audit_trail IS 'Who changed what, when.';
COMMENT ON COLUMN pelton.audit_trail.id IS 'Number of the entry.';
COMMENT ON COLUMN pelton.audit_trail.at IS 'When.';
COMMENT ON COLUMN pelton.audit_trail.who IS 'The person, as far as known, and the database role.';
COMMENT ON COLUMN pelton.audit_trail.actor IS 'OS user or API user; NULL: plain SQL.';
COMMENT ON COLUMN pelton.audit_trail.role IS 'Database role.';
COMMENT ON COLUMN pelton.audit_trail.action IS 'job.cancel, queue.pause, dead.redrive, ...';
COMMENT ON COLUMN pelton.audit_trail.target IS 'Job id, queue name, ...';
COMMENT ON COLUMN pelton.audit_trail.job_id IS 'The target as a job id, if it looks like one.';
COMMENT ON COLUMN pelton.audit_trail.before IS 'What was.';
COMMENT ON COLUMN pelton.audit_trail.after IS 'What is since.';

CREATE OR REPLACE FUNCTION pelton.record_audit(actor text, action text, target text, before jsonb, after jsonb) RETURNS void
LANGUAGE sql VOLATILE AS $$
    INSERT INTO pelton.audit (actor, action, target, before, after) VALUES (actor, action, target, before, after)
$$;

ALTER TABLE pelton.audit DROP COLUMN token, DROP COLUMN token_name;
