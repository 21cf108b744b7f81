-- Records completed runs that have nothing to say. A unique violation means that somebody else ended one of them: then the
-- batch is repeated by finish_full. Sorted by key, so that two batches cannot deadlock. Touches no row of anybody else.
INSERT INTO pelton.job_attempt (executor, outcome, job_id, run, attempt, started_at, ended_at)
SELECT $1, 'completed', * FROM unnest($2::bigint[], $3::integer[], $4::smallint[], $5::timestamptz[], $6::timestamptz[])
