-- The kinds that live executors work. Reads executors, of which there are few. No locks.
SELECT DISTINCT u.kind FROM pelton.executor e CROSS JOIN unnest(e.kinds) AS u(kind) WHERE e.stopped_at IS NULL AND e.died_at IS NULL ORDER BY u.kind LIMIT 1000
