-- Resumes a queue. Locks its row; for '*' every paused queue's.
SELECT pelton.resume_queue($1, pelton.acting($2))
