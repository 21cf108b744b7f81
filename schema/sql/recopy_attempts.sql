INSERT INTO {next_attempt} SELECT a.* FROM pelton.job_attempt a WHERE a.job_id = ANY ($1)
