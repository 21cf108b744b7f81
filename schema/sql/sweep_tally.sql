-- Deletes tallies of queues past their time, oldest first.
DELETE FROM pelton.queue_tally WHERE (minute, queue) IN (
    SELECT t.minute, t.queue FROM pelton.queue_tally t WHERE t.minute < clock_timestamp() - $1::interval
    ORDER BY t.minute LIMIT $2 FOR UPDATE SKIP LOCKED)
