-- Deletes ticks of the time before the first partition that were decided longer ago than their retention. Reads all of that partition.
DELETE FROM pelton.schedule_tick_old WHERE ctid = ANY (ARRAY(
    SELECT t.ctid FROM pelton.schedule_tick_old t WHERE t.decided_at < clock_timestamp() - $1::interval
    LIMIT $2 FOR UPDATE SKIP LOCKED))
