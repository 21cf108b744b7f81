-- Reads whether reports wait for anybody, the seconds until the next timer is due (-1: none is set), and whether a run is live. For an
-- idle scheduler, which asks this once a minute.
SELECT EXISTS (SELECT FROM pelton.flow_report), EXISTS (SELECT FROM pelton.flow_run WHERE ended_at IS NULL),
    (SELECT CASE WHEN min(t.at) IS NULL THEN -1 ELSE greatest(0, extract(epoch FROM min(t.at) - clock_timestamp())) END::float8
        FROM pelton.flow_timer t)
