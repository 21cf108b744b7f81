-- Cancels one job. Locks: its row where it waits, its void; waits for a duty that is just moving it.
SELECT pelton.cancel($1, pelton.acting($2))
