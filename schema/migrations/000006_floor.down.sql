DROP FUNCTION pelton.job_scheduled_first(bigint[], bigint[]);
DROP FUNCTION pelton.job_ready_first(text[], smallint[], bigint[], bigint[]);
DROP FUNCTION pelton.position_time(bigint);
DROP FUNCTION pelton.position_of(timestamptz);
