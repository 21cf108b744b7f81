-- Notes how duties got on since the last note of a process, $1. Of the duties $2: $3 is how many seconds ago they were last done (NULL: not since), $4
-- after how many more they come again, $5 why they fail (NULL: they do not) and $6 for how many seconds they have. A success clears at what this
-- process failed, and not what another does; of several that fail the last one is told, and since when the first does. In order of their names, so that processes that do so at once wait for each other and no more. Locks: those rows.
INSERT INTO pelton.duty AS d (duty, done_at, due_at, done_by, failing_since, failed_at, failed_by, error)
SELECT n.duty, t.now - coalesce(n.done, 0) * interval '1 second', t.now + (coalesce(n.again, 0) - coalesce(n.done, 0)) * interval '1 second',
    CASE WHEN n.done IS NOT NULL THEN $1::text END, t.now - n.failing * interval '1 second', CASE WHEN n.error IS NOT NULL THEN t.now END,
    CASE WHEN n.error IS NOT NULL THEN $1::text END, n.error
FROM unnest($2::text[], $3::float8[], $4::float8[], $5::text[], $6::float8[]) AS n(duty, done, again, error, failing), (SELECT clock_timestamp() AS now) t
ORDER BY n.duty COLLATE "C"
ON CONFLICT (duty) DO UPDATE SET
    done_at = CASE WHEN excluded.done_by IS NULL THEN d.done_at ELSE greatest(d.done_at, excluded.done_at) END,
    due_at = CASE WHEN excluded.done_by IS NULL THEN d.due_at ELSE greatest(d.due_at, excluded.due_at) END,
    done_by = coalesce(excluded.done_by, d.done_by),
    failing_since = CASE WHEN excluded.error IS NULL THEN CASE WHEN d.failed_by <> $1 THEN d.failing_since END
        WHEN d.failed_by = $1 AND excluded.done_by IS NOT NULL OR d.failed_at < clock_timestamp() - interval '3 minutes' THEN excluded.failing_since
        ELSE least(d.failing_since, excluded.failing_since) END,
    error = CASE WHEN excluded.error IS NOT NULL THEN excluded.error WHEN d.failed_by <> $1 THEN d.error END,
    failed_at = coalesce(excluded.failed_at, d.failed_at), failed_by = coalesce(excluded.failed_by, d.failed_by)
