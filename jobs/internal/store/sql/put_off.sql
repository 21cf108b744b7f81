-- Puts runs where they wait for a time. wake is taken here, after the table's lock, so that no row falls below a floor.
INSERT INTO pelton.job_scheduled (job_id, wake, due, run, attempts, retry)
SELECT u.job_id, greatest(u.due, clock_timestamp()), u.due, u.run, u.attempts, true
FROM unnest($1::bigint[], $2::integer[], $3::smallint[], $4::float8[]) AS t(job_id, run, attempts, delay)
CROSS JOIN LATERAL (SELECT t.job_id, t.run, t.attempts, clock_timestamp() + t.delay * interval '1 second' AS due) u
ON CONFLICT (job_id) DO UPDATE -- as in finish_full
    SET wake = excluded.wake, due = excluded.due, run = excluded.run, attempts = excluded.attempts, retry = excluded.retry
