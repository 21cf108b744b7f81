-- Takes the notes of jobs that changed since the copy began. What they note is committed, so a later statement sees it.
WITH gone AS (DELETE FROM pelton.job_moved WHERE pass = $1 RETURNING job_id)
SELECT DISTINCT job_id FROM gone
