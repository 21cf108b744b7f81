-- Lists what was tried of the jobs of a run that have not ended, the newest 20 attempts of each, and when the next is due of those that wait
-- for it. Errors are cut to $2 characters (0: they are not). A flow has as many such jobs as may run at a time, and each is one look into its partition and one into job_scheduled.
SELECT n.no, a.attempt - 1, a.outcome::text, a.started_at, a.ended_at, CASE WHEN $2 > 0 THEN left(a.error, $2) ELSE a.error END, s.due
FROM pelton.flow_node n CROSS JOIN LATERAL (
    SELECT l.run, l.attempt, l.outcome, l.started_at, l.ended_at, l.error FROM pelton.job_attempt l
    WHERE l.job_id = n.job_id AND l.outcome IN ('errored', 'lost') ORDER BY l.run DESC LIMIT 20
) a LEFT JOIN pelton.job_scheduled s ON s.job_id = n.job_id AND s.retry
WHERE n.run_id = $1 AND n.status IN ('QUEUED', 'KILLING') AND n.job_id IS NOT NULL ORDER BY n.no, a.run
