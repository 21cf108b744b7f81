-- Reads which of a schedule's ticks at these times have their rows already. No locks.
SELECT t.at, t.n FROM pelton.schedule_tick t
WHERE t.schedule_id = $1 AND t.tick = ANY (ARRAY(SELECT pelton.tick_key(a) FROM unnest($2::timestamptz[]) AS a))
