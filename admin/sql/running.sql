-- Which of the runs ($1 jobs, $2 runs; $3 the least, $4 the greatest job) go on, by queue. Reads job and job_attempt by ids, under
-- a custom plan: the range prunes partitions, and the array is hidden from the planner, which would prove it id by id.
WITH taken AS MATERIALIZED (
    SELECT t.id, t.run FROM unnest($1::bigint[], $2::integer[]) AS t(id, run)
), known AS MATERIALIZED (
    SELECT j.id, j.queue FROM pelton.job j WHERE j.id = ANY ((SELECT $1::bigint[])::bigint[]) AND j.id BETWEEN $3 AND $4
), ended AS MATERIALIZED (
    SELECT a.job_id, a.run FROM pelton.job_attempt a WHERE a.job_id = ANY ((SELECT $1::bigint[])::bigint[]) AND a.job_id BETWEEN $3 AND $4
)
SELECT coalesce(c.queue, k.queue), count(*)::float8
FROM taken t JOIN known k ON k.id = t.id LEFT JOIN pelton.job_change c ON c.job_id = t.id
WHERE NOT EXISTS (SELECT FROM ended e WHERE e.job_id = t.id AND e.run = t.run)
GROUP BY 1
