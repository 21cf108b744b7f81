-- Stores what is known of a run as a whole.
UPDATE pelton.flow_run SET status = $2, state = $3, step = step + 1,
    started_at = CASE WHEN $4 THEN coalesce(started_at, clock_timestamp()) ELSE started_at END,
    ended_at = CASE WHEN NOT $5 THEN NULL ELSE coalesce(ended_at, clock_timestamp()) END
WHERE id = $1
