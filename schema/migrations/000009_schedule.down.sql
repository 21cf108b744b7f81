DROP TABLE pelton.schedule_backfill_live;
DROP TABLE pelton.schedule_backfill;
DROP TABLE pelton.schedule_tick;
DROP FUNCTION pelton.tick_key(timestamptz);
DROP FUNCTION pelton.schedule_due_first(bigint[], bigint[]);
DROP TABLE pelton.schedule_due;
DROP TABLE pelton.schedule;
