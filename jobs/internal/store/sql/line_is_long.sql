-- Tells whether the line has more than $1 tickets; stops reading there. No locks.
SELECT count(*) > $1 FROM (SELECT FROM pelton.job_ready LIMIT $1::bigint + 1) r
