-- A backfill says how many of its ticks could not be started, as when the schedule's flow is gone, and why.

ALTER TABLE pelton.schedule_backfill
    ADD COLUMN not_started integer NOT NULL DEFAULT 0, -- of those left out: could not be started
    ADD COLUMN why text;                -- why the last of these could not; NULL: all could
