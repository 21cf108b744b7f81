-- Reads the greatest n of the ticks of a schedule at a time, 0 if there is none. No locks.
SELECT coalesce(max(t.n), 0) FROM pelton.schedule_tick t WHERE t.schedule_id = $1 AND t.tick = pelton.tick_key($2)
