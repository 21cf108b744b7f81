-- Reads the runs of a backfill that are not yet counted: since when each has been there, whether it has ended, and whether well.
-- Locks: none.
SELECT l.tick, coalesce(j.created_at, r.created_at),
    CASE WHEN l.job_id IS NOT NULL
        THEN j.id IS NULL OR coalesce(a.outcome IN ('completed', 'cancelled', 'discarded'), false)
            OR coalesce(pelton.voided(l.job_id, coalesce(a.run, 0) + 1) IN ('cancelled', 'deleted'), false) -- NULL: nothing voids it
                AND NOT pelton.is_leased(l.job_id, coalesce(a.run, 0) + 1)
        ELSE r.id IS NULL OR r.ended_at IS NOT NULL END,
    coalesce(a.outcome = 'completed', r.status = 'SUCCEEDED', false)
FROM pelton.schedule_backfill_live l
LEFT JOIN pelton.job j ON j.id = l.job_id
LEFT JOIN LATERAL (
    SELECT t.run, t.outcome FROM pelton.job_attempt t WHERE t.job_id = l.job_id ORDER BY t.run DESC LIMIT 1
) a ON true
LEFT JOIN pelton.flow_run r ON r.id = l.run_id
WHERE l.backfill_id = $1
ORDER BY l.tick
