-- Ticks decided since $1 that did not run although nobody wanted that, by schedule: by an index that holds only such, at most $3. $2 schedules,
-- empty: all.
WITH ticks AS MATERIALIZED (
    SELECT t.schedule_id, t.at, t.outcome, t.reason, t.note FROM pelton.schedule_tick t
    WHERE (t.outcome = 'failed' OR t.reason = 'missed') AND t.decided_at >= $1 ORDER BY t.decided_at DESC LIMIT $3
)
SELECT s.name, count(*)::float8, count(*) || CASE WHEN count(*) = 1 THEN ' tick' ELSE ' ticks' END || ' did not run, that of '
    || (array_agg(to_char(t.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') || ' the last (' || CASE t.outcome WHEN 'failed' THEN 'failed' ELSE 'missed' END
        || coalesce(': ' || left(t.note, 200), '') || ')' ORDER BY t.at DESC))[1]
FROM ticks t JOIN pelton.schedule s ON s.id = t.schedule_id
WHERE cardinality($2::text[]) = 0 OR s.name = ANY ($2::text[])
GROUP BY s.name ORDER BY 2 DESC, 1 LIMIT $4
