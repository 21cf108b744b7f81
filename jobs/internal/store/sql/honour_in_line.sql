-- Ends runs of these jobs that must not start and wait in a line that nobody claims from. Locks their tickets (held ones are
-- skipped) and the keys of their attempts, in order; waits for whoever is just ending one.
SELECT job_id, run, outcome FROM pelton.honour_in_line($1)
