-- Ids of jobs are times, and partitions are made and dropped by them. A job far ahead would stretch the partition that is closed behind it over years.

CREATE FUNCTION pelton.is_far_ahead(job_id bigint) RETURNS boolean LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT pelton.job_id_time(job_id) > clock_timestamp() + interval '10 minutes'
$$;
COMMENT ON FUNCTION pelton.is_far_ahead IS 'whether an id is of more than ten minutes after now, which the database draws none of';

-- Only the open-ended partition asks, which has rows only when partitions were not made ahead: other inserts pay nothing. NOT VALID: what is there stays.
ALTER TABLE pelton.job_rest ADD CONSTRAINT job_not_far_ahead CHECK (NOT pelton.is_far_ahead(id)) NOT VALID;
