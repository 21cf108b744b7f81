-- Jobs that are in no place. Reads all jobs and attempts.
SELECT l.job_id FROM pelton.lost_jobs($1::bigint * interval '1 microsecond') l
