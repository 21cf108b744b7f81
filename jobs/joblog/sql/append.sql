-- Stores a batch of chunks of many runs. Locks: ROW EXCLUSIVE on job_log and the present partition, no rows of others. A batch
-- whose commit was not answered is sent again with the same ids: what is there already is left alone. age is how long ago
-- the chunk was begun, in microseconds. Returns the database's time.
WITH stored AS (
    INSERT INTO pelton.job_log (id, job_id, run, stream, pos, at, data)
    SELECT c.id, c.job_id, c.run, c.stream::"char", c.pos, clock_timestamp() - c.age * interval '1 microsecond', c.data
    FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::text[], $5::bigint[], $6::bigint[], $7::bytea[])
        AS c(id, job_id, run, stream, pos, age, data)
    ON CONFLICT DO NOTHING
)
SELECT clock_timestamp()
