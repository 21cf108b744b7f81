DROP FUNCTION pelton.lost_jobs(interval);
DROP VIEW pelton.job_state;
