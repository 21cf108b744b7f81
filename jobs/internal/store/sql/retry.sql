-- Makes one job available now. Locks: its partition against retention (shared), its row where it waits, its unique key, the
-- key of its attempt; waits for a second retry of the same job.
SELECT pelton.retry($1, pelton.acting($2))
