-- What partition maintenance and retention need beside the partitions themselves. docs/operations.md tells how they work.

-- Which jobs ended lately? Asked of a whole partition when it is about to go. Rows come in order of time, so a BRIN is enough.
CREATE INDEX job_attempt_ended ON pelton.job_attempt USING brin (ended_at) WITH (autosummarize = on);

-- While what must be kept of a partition is copied out of it, triggers on it note here which jobs change. Appended only, so
-- that nobody waits for a stranger; emptied by maintenance.
CREATE TABLE pelton.job_moved (
    pass bigint NOT NULL,               -- of the keeper that copies
    job_id bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_truncate = off);

-- note_move is the trigger function on partitions of job and job_attempt; its arguments are the pass and the column of the
-- job's id. It runs with its owner's rights, because whoever ends a job need not know of maintenance.
CREATE FUNCTION pelton.note_move() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
    job bigint;
BEGIN
    IF TG_ARGV[1] = 'id' THEN
        job := CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END;
    ELSE
        job := CASE TG_OP WHEN 'DELETE' THEN OLD.job_id ELSE NEW.job_id END;
    END IF;
    INSERT INTO pelton.job_moved (pass, job_id) VALUES (TG_ARGV[0]::bigint, job);
    RETURN NULL;
END $$;

-- partition_lock is the key of the advisory lock of one partition of job.
CREATE FUNCTION pelton.partition_lock(partition oid) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (1346720340::bigint << 32) | partition::bigint
$$;

-- lock_job_partition keeps maintenance from moving or deleting the job until the transaction ends; false: there is no such
-- job. For whoever revives, changes or deletes a job that has ended: call it in a statement of its own, then look, then write.
-- Waits only while maintenance swaps that very partition, or deletes a batch from it.
CREATE FUNCTION pelton.lock_job_partition(job_id bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    held oid;
    found_in oid;
BEGIN
    LOOP
        SELECT j.tableoid INTO found_in FROM pelton.job j WHERE j.id = job_id;
        IF found_in IS NULL OR found_in = held THEN
            RETURN found_in IS NOT NULL;
        END IF;
        PERFORM pg_advisory_xact_lock_shared(pelton.partition_lock(found_in));
        held := found_in;
    END LOOP;
END $$;
