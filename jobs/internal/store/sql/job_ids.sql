-- Draws ids in a block, with the database's time. Locks: none beyond the sequence.
SELECT pelton.job_ids($1), clock_timestamp()
