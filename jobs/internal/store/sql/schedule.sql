-- Puts new jobs where they wait for their time. wake is taken here, after the table's lock, so that no row falls below a floor.
INSERT INTO pelton.job_scheduled (job_id, wake, due)
SELECT u.id, greatest(u.due, clock_timestamp()), u.due FROM unnest($1::bigint[], $2::timestamptz[]) AS u(id, due)
