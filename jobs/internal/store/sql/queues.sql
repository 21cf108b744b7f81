-- Queues that somebody named or that a living executor works, by name. A paused '*' shows at every queue. Locks nothing.
SELECT n.name, coalesce(q.created_at, n.since), coalesce(q.updated_at, n.since), coalesce(q.paused_at, everything.paused_at),
    coalesce(q.metadata, '{}')::text
FROM (
    SELECT m.name, min(m.since) AS since
    FROM (SELECT q.name, q.created_at AS since FROM pelton.queue q WHERE q.name <> '*' OR q.paused_at IS NOT NULL
        UNION ALL SELECT unnest(x.queues), x.started_at FROM pelton.executor x WHERE x.stopped_at IS NULL AND x.died_at IS NULL) m
    GROUP BY m.name
) n
LEFT JOIN pelton.queue q ON q.name = n.name
LEFT JOIN pelton.queue everything ON everything.name = '*'
WHERE $1::text IS NULL OR n.name = $1
ORDER BY n.name LIMIT $2
