-- Dead letters since $1, by queue: by the index on their time, at most $5. $2 queues, empty: all but queue $4; $3 kinds, empty: all.
WITH letters AS MATERIALIZED (
    SELECT d.job_id, d.queue, d.kind, d.error, d.died_at FROM pelton.job_dead d WHERE d.died_at >= $1 ORDER BY d.died_at DESC LIMIT $5
)
SELECT l.queue, count(*)::float8, count(*) || CASE WHEN count(*) = 1 THEN ' new dead letter' ELSE ' new dead letters' END
    || (array_agg(' (job ' || l.job_id || ', ' || l.kind || coalesce(': ' || left(split_part(l.error, E'\n', 1), 200), '') || ')' ORDER BY l.died_at DESC))[1]
FROM letters l
WHERE CASE WHEN cardinality($2::text[]) > 0 THEN l.queue = ANY ($2::text[]) ELSE l.queue <> $4 END
    AND (cardinality($3::text[]) = 0 OR l.kind = ANY ($3::text[]))
GROUP BY l.queue ORDER BY 2 DESC, 1 LIMIT $6
