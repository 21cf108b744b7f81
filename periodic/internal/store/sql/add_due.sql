-- Where a new schedule begins.
-- Locks: none that others wait for.
INSERT INTO pelton.schedule_due (schedule_id, decided, code) VALUES ($1, clock_timestamp(), $2)
