-- Reads how many microseconds remain until the first schedule at or above the floor ($1), or of those that only this process can fire ($2),
-- is due (NULL: none is), and the newest row of floor. No locks.
SELECT least((pelton.schedule_due_first(ARRAY[$1::bigint], ARRAY[253402300799000000]))[1],
        (SELECT pelton.position_of(min(o.wake)) FROM unnest($2::text[]) AS c(code)
            CROSS JOIN LATERAL (SELECT d.wake FROM pelton.schedule_due d WHERE d.code = c.code ORDER BY d.wake LIMIT 1) o)
    ) - pelton.position_of(clock_timestamp()),
    coalesce((SELECT max(f.no) FROM pelton.floor f WHERE f.relation = 'schedule_due'), 0)
