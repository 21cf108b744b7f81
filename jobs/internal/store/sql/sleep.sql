-- Registers a sleeper on these lines, so that whoever enqueues there sends a hint.
INSERT INTO pelton.job_sleeper (line, executor) SELECT unnest($2::text[]), $1
ON CONFLICT (line, executor) DO UPDATE SET at = excluded.at
