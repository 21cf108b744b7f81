-- The least id of the last $3 jobs with $1 <= id < $2 (NULL: none), how many these are, and the least id of jobs of the last ten minutes. By the primary key. Locks nothing.
SELECT min(j.id), count(*), pelton.id_at(clock_timestamp() - interval '10 minutes')
FROM (SELECT j.id FROM pelton.job j WHERE j.id >= $1::bigint AND j.id < $2::bigint ORDER BY j.id DESC LIMIT $3) j
