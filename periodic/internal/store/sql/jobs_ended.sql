-- Reads which of these jobs ($1; $2 and $3: the least and the greatest) have ended, and when. One that was cancelled while it waited has,
-- though a ticket in the line may still name it; so has one that is gone. No locks.
SELECT i.id, a.ended_at
FROM unnest(ARRAY(SELECT unnest($1::bigint[]))) AS i(id)
LEFT JOIN LATERAL (
    SELECT l.run, l.outcome, l.ended_at FROM pelton.job_attempt l
    WHERE l.job_id = i.id AND l.job_id BETWEEN $2::bigint AND $3::bigint ORDER BY l.run DESC LIMIT 1
) a ON true
WHERE a.outcome IN ('completed', 'cancelled', 'discarded')
    OR a.run IS NULL AND NOT EXISTS (SELECT FROM pelton.job j WHERE j.id = i.id AND j.id BETWEEN $2::bigint AND $3::bigint)
    OR pelton.voided(i.id, coalesce(a.run, 0) + 1) IN ('cancelled', 'deleted') AND NOT pelton.is_leased(i.id, coalesce(a.run, 0) + 1)
