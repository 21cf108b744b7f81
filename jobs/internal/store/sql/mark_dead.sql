-- Declares an executor dead, if its counter still is what was observed. Locks: its row; a heartbeat that holds it is waited for
-- and then wins. Takes it off the sleepers' list.
WITH dead AS (
    UPDATE pelton.executor SET died_at = clock_timestamp()
    WHERE id = $1 AND beat = $2 AND died_at IS NULL AND stopped_at IS NULL RETURNING id
), asleep AS (
    DELETE FROM pelton.job_sleeper s USING dead WHERE s.executor = dead.id
)
SELECT count(*) FROM dead
