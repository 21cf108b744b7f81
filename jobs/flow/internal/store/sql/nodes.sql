-- Reads the nodes of a run.
SELECT no, path, status, try, attempt, job_id, queued_at, started_at, ended_at, template, index, item, reason, held, outputs, jobs
FROM pelton.flow_node WHERE run_id = $1 ORDER BY no
