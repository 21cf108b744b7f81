-- Who may insert jobs may write these tables without the client and the functions that check: what no program could read, or would stop a duty, is
-- refused here, since the jobs of others would wait with it. NOT VALID: what is there stays.

-- A time of a year 1 to 9999: others cannot be read by programs, or told in JSON. Sizes are those in memory, of which jsonb takes more than its text.
ALTER TABLE pelton.job ADD CONSTRAINT job_sound CHECK (
    created_at >= '0001-01-01 00:00:00+00' AND created_at < '10000-01-01 00:00:00+00'
    AND (scheduled_at IS NULL OR scheduled_at >= '0001-01-01 00:00:00+00' AND scheduled_at < '10000-01-01 00:00:00+00')
    AND octet_length(kind) <= 128 AND octet_length(queue) <= 64 AND pg_column_size(args) <= 1048576 + 4
    AND (metadata IS NULL OR jsonb_typeof(metadata) = 'object' AND pg_column_size(metadata) <= 8 * 1048576)
    AND (tags IS NULL OR array_ndims(tags) = 1 AND array_position(tags, NULL) IS NULL AND pg_column_size(tags) <= 8 * 1048576)) NOT VALID;

ALTER TABLE pelton.job_ready ADD CONSTRAINT job_ready_sound CHECK (
    priority >= 1 AND priority <= 4 AND octet_length(line) <= 1000 AND array_ndims(job_ids) = 1 AND array_lower(job_ids, 1) = 1) NOT VALID;

ALTER TABLE pelton.job_scheduled ADD CONSTRAINT job_scheduled_sound CHECK (
    due >= '0001-01-01 00:00:00+00' AND due < '10000-01-01 00:00:00+00' AND wake <= greatest(due, clock_timestamp()) + interval '1 hour') NOT VALID;

-- A wake time in the past lies below the low-water mark, where no mover looks.
CREATE FUNCTION pelton.wake_now() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    NEW.wake := clock_timestamp();
    RETURN NEW;
END $$;
CREATE TRIGGER job_scheduled_wake BEFORE INSERT ON pelton.job_scheduled FOR EACH ROW
    WHEN (NEW.wake < clock_timestamp()) EXECUTE FUNCTION pelton.wake_now();
