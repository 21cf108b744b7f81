-- Reads what a person changed of claimed jobs; nearly always nothing. No locks.
SELECT job_id, priority, max_attempts, queue, args, metadata, due, coalesce(due_run, 0) FROM pelton.job_change WHERE job_id = ANY ($1::bigint[])
