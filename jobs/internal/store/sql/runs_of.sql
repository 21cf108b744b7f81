-- All runs of a job, ended or going on, in order. A custom plan each time, so that partitions prune. No locks.
SELECT r.run, r.attempt, r.outcome, r.started_at, r.ended_at, r.next_due, coalesce(r.error, ''), coalesce(r.trace, ''),
    r.output::text, coalesce(r.executor, 0), coalesce(r.executor_name, ''), coalesce(r.host, '')
FROM pelton.run_report r WHERE r.job_id = $1 ORDER BY r.run
