-- Ends runs that were taken and must not start. Locks: keys of their attempts, in order; waits for whoever is just ending one.
SELECT job_id, run, outcome FROM pelton.honour_voids($1, $2, $3)
