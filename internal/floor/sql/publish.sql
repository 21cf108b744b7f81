-- Appends a row that follows the newest one its marker knew; whoever comes second on that row publishes nothing. Only on the
-- instance that was watched, and only if the last position drawn is not behind.
INSERT INTO pelton.floor (relation, follows, instance, settled, look_from, passed)
SELECT $1, $2, $3, $4, $5, $6
WHERE pg_postmaster_start_time() = $3 AND $4 <= CASE $1
    WHEN 'job_ready' THEN (SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END FROM pelton.job_ready_seq s)
    WHEN 'flow_report' THEN (SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END FROM pelton.flow_report_id_seq s)
    ELSE pelton.position_of(clock_timestamp()) END
ON CONFLICT (relation, follows) DO NOTHING
RETURNING no
