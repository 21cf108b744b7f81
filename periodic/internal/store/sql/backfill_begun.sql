-- Notes runs of a backfill that were started.
-- Locks: none; the row of the backfill is held.
INSERT INTO pelton.schedule_backfill_live (backfill_id, tick, job_id, run_id)
SELECT $1, u.tick, u.job_id, u.run_id FROM unnest($2::timestamptz[], $3::bigint[], $4::bigint[]) AS u(tick, job_id, run_id)
