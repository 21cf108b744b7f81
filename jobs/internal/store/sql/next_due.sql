-- Reads how many microseconds remain until the first scheduled job at or above the floor is due (NULL: there is none), and the
-- newest row of floor.
SELECT (pelton.job_scheduled_first(ARRAY[$1::bigint], ARRAY[253402300799000000]))[1] - pelton.position_of(clock_timestamp()),
    coalesce((SELECT max(f.no) FROM pelton.floor f WHERE f.relation = 'job_scheduled'), 0)
