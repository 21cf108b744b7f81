ALTER TABLE pelton.job_ready DROP CONSTRAINT job_ready_whole;
