ALTER TABLE pelton.schedule_backfill DROP COLUMN why, DROP COLUMN not_started;
