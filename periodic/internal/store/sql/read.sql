-- Reads schedules that are locked ($1), and the database's time. The spec is left out where its version is the one that is known ($2).
-- Another statement than that which locks, so that its snapshot is newer than the locks. No locks.
SELECT s.id, s.version, s.name, s.owner, s.code, s.created_at, s.paused_at IS NOT NULL,
    CASE WHEN s.version = k.version THEN NULL ELSE s.spec::text END, clock_timestamp()
FROM unnest($1::bigint[], $2::integer[]) AS k(id, version) JOIN pelton.schedule s ON s.id = k.id
