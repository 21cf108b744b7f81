-- Reads whether reports from the floor $1 on wait for anybody, whether a run is live, the seconds until the next timer is due (-1: none is
-- set), and the newest row of floor. For an idle scheduler, which asks this once a minute. No locks. Unless $2, a run is taken to be live, and
-- timers that are long overdue are left out: rows that somebody's snapshot keeps are read through now and then, not each time.
SELECT (pelton.flow_report_first(ARRAY[$1::bigint], ARRAY[9223372036854775807]))[1] IS NOT NULL,
    CASE WHEN $2 THEN EXISTS (SELECT FROM pelton.flow_run WHERE ended_at IS NULL) ELSE true END,
    (SELECT CASE WHEN min(t.at) IS NULL THEN -1 ELSE greatest(0, extract(epoch FROM min(t.at) - clock_timestamp())) END::float8
        FROM pelton.flow_timer t WHERE t.at >= CASE WHEN $2 THEN '-infinity' ELSE now() - interval '5 minutes' END),
    coalesce((SELECT max(f.no) FROM pelton.floor f WHERE f.relation = 'flow_report'), 0)
