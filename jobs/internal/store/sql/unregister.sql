-- An executor says goodbye: its sleepers go, its row stays for a while, since attempts name it.
WITH gone AS (DELETE FROM pelton.job_sleeper WHERE executor = $1)
UPDATE pelton.executor SET stopped_at = clock_timestamp(), running = 0 WHERE id = $1 AND died_at IS NULL
