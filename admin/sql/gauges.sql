-- What waits, who works, and how far the line's mark is: rows of a name, a label and a value; equal ones add up. Reads all
-- of job_ready, once; other tables are counted up to $1 rows, beyond that the planner's estimate is taken if it is larger. Dead letters are
-- counted by their queues' index, up to $3 of each of $2 queues; those with more share what the estimate leaves. Locks nothing but ACCESS SHARE.
WITH RECURSIVE lines AS MATERIALIZED (
    SELECT r.line, sum(cardinality(r.job_ids)) AS jobs, min(r.entered_at) AS oldest FROM pelton.job_ready r GROUP BY r.line
), queues AS MATERIALIZED (
    SELECT split_part(l.line, '/', 1) AS name, sum(l.jobs) AS jobs, min(l.oldest) AS oldest FROM lines l GROUP BY 1
), living AS MATERIALIZED (
    SELECT x.queues, x.slots, x.beat_at >= clock_timestamp() - interval '30 seconds' AS alive FROM pelton.executor x
    WHERE x.stopped_at IS NULL AND x.died_at IS NULL
), names AS MATERIALIZED (
    SELECT DISTINCT unnest(x.queues) AS name FROM living x WHERE x.alive
), counted (name, relation, rows) AS MATERIALIZED (
    SELECT 'scheduled', 'pelton.job_scheduled'::regclass, count(*) FROM (SELECT FROM pelton.job_scheduled LIMIT $1 + 1) s
    UNION ALL
    SELECT 'parked', 'pelton.job_parked'::regclass, count(*) FROM (SELECT FROM pelton.job_parked LIMIT $1 + 1) p
), buried (queue, n) AS (
    (SELECT d.queue, 1 FROM pelton.job_dead d ORDER BY d.queue LIMIT 1)
    UNION ALL
    SELECT (SELECT d.queue FROM pelton.job_dead d WHERE d.queue > b.queue ORDER BY d.queue LIMIT 1), b.n + 1 FROM buried b
    WHERE b.queue IS NOT NULL AND b.n < $2
), dead AS MATERIALIZED (
    SELECT b.queue, (SELECT count(*) FROM (SELECT FROM pelton.job_dead d WHERE d.queue = b.queue LIMIT $3 + 1) l) AS rows
    FROM buried b WHERE b.queue IS NOT NULL
), rest AS MATERIALIZED (
    SELECT ((SELECT c.reltuples FROM pg_catalog.pg_class c WHERE c.oid = 'pelton.job_dead'::regclass)
        - coalesce(sum(d.rows) FILTER (WHERE d.rows <= $3), 0)) / greatest(count(*) FILTER (WHERE d.rows > $3), 1) AS each FROM dead d
)
SELECT 'ready', q.name, q.jobs::float8 FROM queues q
UNION ALL SELECT 'oldest', q.name, greatest(extract(epoch FROM clock_timestamp() - q.oldest), 0)::float8 FROM queues q
UNION ALL SELECT w.what, n.name, 0 FROM names n, unnest(ARRAY['ready', 'oldest', 'running', 'dead']) AS w(what)
UNION ALL SELECT c.name, '', CASE WHEN c.rows <= $1 THEN c.rows
    ELSE greatest(c.rows, (SELECT p.reltuples FROM pg_catalog.pg_class p WHERE p.oid = c.relation)) END::float8 FROM counted c
UNION ALL SELECT 'dead', d.queue, CASE WHEN d.rows <= $3 THEN d.rows ELSE greatest(d.rows, rest.each) END::float8 FROM dead d, rest
UNION ALL SELECT 'alive', '', count(*) FILTER (WHERE x.alive) FROM living x
UNION ALL SELECT 'silent', '', count(*) FILTER (WHERE NOT x.alive) FROM living x
UNION ALL SELECT 'slots', '', coalesce(sum(x.slots) FILTER (WHERE x.alive), 0) FROM living x
UNION ALL SELECT 'died', '', count(*) FROM pelton.executor x WHERE x.died_at >= clock_timestamp() - interval '1 hour'
UNION ALL SELECT 'notified', '', pg_notification_queue_usage()
UNION ALL SELECT 'lag', 'job_ready', (greatest(CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END
        - coalesce((SELECT f.settled FROM pelton.floor f WHERE f.relation = 'job_ready' ORDER BY f.no DESC LIMIT 1), 0), 0))::float8
    FROM pelton.job_ready_seq s
UNION ALL SELECT 'passed', t.name, coalesce((SELECT CASE WHEN jsonb_typeof(f.passed) = 'array' THEN jsonb_array_length(f.passed) END
        FROM pelton.floor f WHERE f.relation = t.name ORDER BY f.no DESC LIMIT 1), 0)::float8
    FROM (VALUES ('job_ready'), ('job_scheduled')) AS t(name)
UNION ALL SELECT 'duty', d.duty, extract(epoch FROM d.late)::float8 FROM pelton.duty_report d
