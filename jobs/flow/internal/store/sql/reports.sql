-- Reads what is to happen to a run, under its row's lock.
SELECT id, node, job_id, outcome::text, attempt, started_at, ended_at, error, output, action, args, run_id
FROM pelton.flow_report WHERE run_id = $1 ORDER BY id LIMIT $2
