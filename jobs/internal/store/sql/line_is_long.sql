-- Tells whether the line has more than $1 tickets, stopping to read there, and whether its table has more than $2 bytes. No locks.
SELECT (SELECT count(*) > $1 FROM (SELECT FROM pelton.job_ready LIMIT $1::bigint + 1) r), pg_relation_size('pelton.job_ready') > $2
