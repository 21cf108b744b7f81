-- Sets a queue's metadata and tells who did. Locks its row.
WITH old AS (
    SELECT q.metadata FROM pelton.queue q WHERE q.name = $1
), fresh AS (
    INSERT INTO pelton.queue AS q (name, metadata) VALUES ($1, $2::text::jsonb)
    ON CONFLICT (name) DO UPDATE SET metadata = excluded.metadata, updated_at = clock_timestamp()
    RETURNING q.metadata
)
SELECT pelton.record_audit(pelton.acting($3), 'queue.update', $1, (SELECT o.metadata FROM old o), f.metadata) FROM fresh f
