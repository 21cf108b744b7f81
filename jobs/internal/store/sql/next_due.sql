-- Reads how many microseconds remain until the first scheduled job at or above the floor is due (NULL: there is none), the
-- newest row of floor, and whether tickets were drawn since the line's newest row. No locks.
SELECT (pelton.job_scheduled_first(ARRAY[$1::bigint], ARRAY[253402300799000000]))[1] - pelton.position_of(clock_timestamp()),
    coalesce((SELECT max(f.no) FROM pelton.floor f WHERE f.relation = 'job_scheduled'), 0),
    (SELECT s.is_called AND s.last_value > coalesce((SELECT f.settled FROM pelton.floor f WHERE f.relation = 'job_ready'
        ORDER BY f.no DESC LIMIT 1), 0) FROM pelton.job_ready_seq s)
