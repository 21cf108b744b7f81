-- Whether there are more than $1 dead letters; counts at most $2 more.
SELECT 'all', c.n::float8, CASE WHEN c.n > $1::bigint + $2::bigint THEN 'more than ' || c.n - 1 ELSE c.n::text END || ' dead letters'
FROM (SELECT count(*) AS n FROM (SELECT FROM pelton.job_dead LIMIT $1::bigint + $2::bigint + 1) d) c WHERE c.n > $1::bigint
