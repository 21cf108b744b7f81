DELETE FROM {next_attempt} WHERE job_id = ANY ($1)
