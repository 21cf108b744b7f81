-- First the tables that maintenance had made or taken out when it was interrupted: they are no partitions (yet, or any more),
-- so dropping job and its like does not reach them.
DO $$
DECLARE
    leftover regclass;
BEGIN
    FOR leftover IN
        SELECT c.oid FROM pg_catalog.pg_class c
        WHERE c.relnamespace = (SELECT j.relnamespace FROM pg_catalog.pg_class j WHERE j.oid = 'pelton.job'::regclass)
            AND c.relkind = 'r' AND NOT c.relispartition
            AND c.relname ~ '^(job|job_attempt|job_log|schedule_tick)_(p|old|next|gone)_'
    LOOP
        EXECUTE format('DROP TABLE %s', leftover);
    END LOOP;
END $$;
DROP FUNCTION IF EXISTS pelton.lock_job_partition, pelton.partition_lock;
DROP FUNCTION IF EXISTS pelton.note_move CASCADE; -- with the triggers of an interrupted move
DROP TABLE IF EXISTS pelton.job_moved;
DROP INDEX IF EXISTS pelton.job_attempt_ended;
