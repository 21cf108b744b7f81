DROP FUNCTION IF EXISTS pelton.insert_jobs, pelton.take_keys, pelton.key_is_free, pelton.state_bit, pelton.wake,
    pelton.id_at, pelton.job_id_time, pelton.job_ids;
