-- Ends jobs that wait for their time although a cancel holds for them. Held rows are skipped.
SELECT job_id, run FROM pelton.cancel_waiting($1)
