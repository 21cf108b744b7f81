-- Records ended runs, sorted by key. What comes back was ended by this; what does not had been ended by somebody else, whatever
-- this statement's snapshot says. Waits for a transaction that is just recording one of them.
INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, executor, started_at, due, error)
SELECT u.job_id, u.run, u.attempt, u.outcome::pelton.outcome, $1, u.started_at,
    clock_timestamp() + u.delay * interval '1 second', u.error
FROM unnest($2::bigint[], $3::integer[], $4::smallint[], $5::text[], $6::timestamptz[], $7::float8[], $8::text[])
    AS u(job_id, run, attempt, outcome, started_at, delay, error)
ORDER BY u.job_id, u.run
ON CONFLICT DO NOTHING
RETURNING job_id, run
