-- Puts a due job back where it waits, for a while longer. wake is taken here, after the table's lock, so that no row falls below a
-- floor.
INSERT INTO pelton.job_scheduled (job_id, wake, due, run, attempts, retry)
VALUES ($1, clock_timestamp() + $6::float8 * interval '1 second', $5, $2, $3, $4)
