-- Reads what there is at these times of a schedule: the greatest n, and whether one has fired.
-- Locks: none.
SELECT t.at, max(t.n), bool_or(t.outcome = 'fired') FROM pelton.schedule_tick t
WHERE t.schedule_id = $1 AND t.tick = ANY (ARRAY(SELECT pelton.tick_key(a) FROM unnest($2::timestamptz[]) AS a))
GROUP BY t.at
