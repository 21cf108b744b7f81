-- What became of a schedule's ticks, the latest first, from before a place (tick, n) on; NULL parameters filter nothing.
-- Locks: none.
SELECT t.tick, t.at, t.n, t.source, t.outcome, t.reason, t.note, t.wall, t.job_id, t.run_id, t.backfill_id, t.decided_at, t.actor
FROM pelton.schedule_tick t
WHERE t.schedule_id = $1
    AND ($2::bigint IS NULL OR (t.tick <= $2 AND (t.tick, t.n) < ($2, $3::int)))
    AND ($4::timestamptz IS NULL OR t.tick >= pelton.tick_key($4)) AND ($5::timestamptz IS NULL OR t.tick < pelton.tick_key($5))
    AND ($6::text IS NULL OR t.outcome = $6) AND ($7::text IS NULL OR t.source = $7)
    AND ($8::bigint IS NULL OR t.backfill_id = $8)
ORDER BY t.tick DESC, t.n DESC LIMIT $9
