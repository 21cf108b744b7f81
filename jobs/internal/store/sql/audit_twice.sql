-- Jobs that are in more than one place. Reads all attempts.
SELECT s.job_id FROM pelton.job_state s GROUP BY s.job_id HAVING count(*) > 1 ORDER BY s.job_id
