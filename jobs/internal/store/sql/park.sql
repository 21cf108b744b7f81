-- Puts new jobs where they wait for somebody.
INSERT INTO pelton.job_parked (job_id) SELECT unnest($1::bigint[])
