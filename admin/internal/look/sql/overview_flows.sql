-- How flows stand: runs that live (by their index, up to 10,000), and how many of the last 10,000 runs that ended within a day failed (by flow_run_ended). No locks.
SELECT (SELECT count(*) FROM (SELECT FROM pelton.flow_run r WHERE r.ended_at IS NULL LIMIT 10000) live),
    (SELECT count(*) FILTER (WHERE e.status = 'FAILED') FROM (
        SELECT r.status FROM pelton.flow_run r WHERE r.ended_at > now() - interval '1 day' ORDER BY r.ended_at DESC LIMIT 10000) e)
