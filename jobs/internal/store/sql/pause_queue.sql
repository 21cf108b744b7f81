-- Pauses a queue. Locks its row.
SELECT pelton.pause_queue($1, pelton.acting($2))
