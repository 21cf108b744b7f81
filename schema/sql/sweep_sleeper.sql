-- Deletes rows of sleepers that never woke: their processes are gone.
DELETE FROM pelton.job_sleeper WHERE (line, executor) IN (
    SELECT s.line, s.executor FROM pelton.job_sleeper s WHERE s.at < clock_timestamp() - $1::interval
    LIMIT $2 FOR UPDATE SKIP LOCKED)
