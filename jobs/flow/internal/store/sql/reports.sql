-- Reads what is to happen to a run, from the floor $3 on, under its row's lock.
SELECT ctid::text, node, job_id, outcome::text, attempt, started_at, ended_at, error, output, action, args, run_id
FROM pelton.flow_report WHERE run_id = $1 AND id >= $3 ORDER BY id LIMIT $2
