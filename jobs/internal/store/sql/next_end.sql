-- The job nearest to $1 in the order of ids, from there on, that has had a run that ended (NULL: none). {order} and {sign} are put in by the caller. By the primary key. Locks nothing.
SELECT (SELECT a.job_id FROM pelton.job_attempt a WHERE a.job_id {sign} $1::bigint ORDER BY a.job_id {order} LIMIT 1)
