-- Reads the last position drawn, and the newest row of floor. Takes no locks. The holders are read in a later statement.
SELECT (SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END FROM pelton.flow_report_id_seq s), pg_postmaster_start_time(),
    coalesce(f.no, 0), coalesce(f.instance, pg_postmaster_start_time()), coalesce(f.settled, 0), f.passed,
    coalesce(extract(epoch FROM clock_timestamp() - f.at), 1000000000)::float8
FROM (VALUES (1)) AS one LEFT JOIN LATERAL (
    SELECT n.no, n.instance, n.settled, n.passed, n.at FROM pelton.floor n WHERE n.relation = 'flow_report' ORDER BY n.no DESC LIMIT 1
) f ON true
