-- A sign of life, and what the executor should know: its leases, the voids of its runs, paused queues, and lines of single
-- kinds of its own that hold something. Keeps its sleepers awake in the list.
-- Locks: its own rows. No row: it was taken for dead.
WITH alive AS (
    UPDATE pelton.executor SET beat = beat + 1, beat_at = clock_timestamp(), running = $2
    WHERE id = $1 AND died_at IS NULL AND stopped_at IS NULL RETURNING id
), asleep AS (
    UPDATE pelton.job_sleeper SET at = clock_timestamp() WHERE executor = $1
)
SELECT
    ARRAY(SELECT no FROM pelton.job_lease WHERE executor = $1),
    ARRAY(SELECT DISTINCT v.job_id FROM unnest($3::bigint[], $6::integer[]) AS w(id, run)
        JOIN pelton.job_void v ON v.job_id = w.id AND v.run BETWEEN w.run - 1 AND w.run WHERE v.reason <> 'moved'),
    ARRAY(SELECT name FROM pelton.queue WHERE paused_at IS NOT NULL),
    ARRAY(SELECT l.line FROM unnest($4::text[]) AS q(name) CROSS JOIN unnest($5::text[]) AS k(kind)
        CROSS JOIN LATERAL (SELECT q.name || '/kind=' || k.kind AS line) l
        WHERE EXISTS (SELECT FROM pelton.job_ready r WHERE r.line = l.line))
FROM alive
