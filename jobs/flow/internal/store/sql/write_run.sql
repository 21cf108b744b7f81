-- Stores a run's status.
UPDATE pelton.flow_run SET status = $2, step = step + 1, reason = $6,
    started_at = CASE WHEN $3 THEN coalesce(started_at, $5) ELSE started_at END,
    resumed_at = CASE WHEN $3 AND status IN ('PREPARING', 'QUEUED') AND started_at IS NOT NULL THEN $5 ELSE resumed_at END,
    ended_at = CASE WHEN NOT $4 THEN NULL ELSE coalesce(ended_at, clock_timestamp()) END
WHERE id = $1
