-- Processes found dead since $1. $2 queues: those that worked one of them; empty: all. Reads all of executor, which holds some days.
WITH dead AS MATERIALIZED (
    SELECT x.name, x.host, x.pid, x.queues, x.died_at FROM pelton.executor x
    WHERE x.died_at >= $1 AND (cardinality($2::text[]) = 0 OR x.queues && $2::text[]) ORDER BY x.died_at DESC LIMIT $3
)
SELECT d.name, count(*)::float8, (array_agg('died without a goodbye, found at ' || to_char(d.died_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    || ' (host ' || d.host || ', pid ' || d.pid || ', queues ' || array_to_string(d.queues, ', ') || ')' ORDER BY d.died_at DESC))[1]
    || CASE WHEN count(*) > 1 THEN ', ' || count(*) || ' times' ELSE '' END
FROM dead d GROUP BY d.name ORDER BY max(d.died_at) DESC, 1 LIMIT $4
