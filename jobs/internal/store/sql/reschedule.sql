-- Gives one job that waits for its time another one. Locks: its row where it waits, its changes; waits for a duty that is just moving it.
SELECT pelton.reschedule($1, $2, pelton.acting($3))
