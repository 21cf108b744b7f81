-- Enqueueing: one implementation for Go (pgx and database/sql), plain SQL and triggers. COPY is the only other way in.

-- job_ids makes n ids in a row, all of this second.
CREATE FUNCTION pelton.job_ids(n integer) RETURNS bigint[] LANGUAGE sql VOLATILE AS $$
    SELECT array_agg((base << 24) | (nextval('pelton.job_id_seq') & 16777215))
    FROM (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint - 1704067200 AS base) b, generate_series(1, n)
$$;

-- job_id_time is the second in which an id was made, and the least id of a time is id_at.
CREATE FUNCTION pelton.job_id_time(id bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_timestamp((id >> 24) + 1704067200)
$$;
CREATE FUNCTION pelton.id_at(t timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT greatest(floor(extract(epoch FROM t))::bigint - 1704067200, 0) << 24
$$;

-- wake hints at work in these lines, if somebody sleeps there. Nothing is sent while the notification queue is half full,
-- nor for lines without a sleeper, because a NOTIFY takes a lock of the whole cluster at commit.
--
-- alone tells that the transaction ends with this statement. Of those one at a time hints at a line: the others leave it to the
-- one whose commit is just under way. Its hint comes after their rows went in, so whom it wakes finds them, or sees that their
-- writers are open and waits for them. A transaction that may stay open always sends its own.
CREATE FUNCTION pelton.wake(lines text[], alone boolean DEFAULT false) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    l text;
BEGIN
    FOR l IN
        SELECT DISTINCT u.line FROM unnest(lines) AS u(line)
        WHERE EXISTS (SELECT FROM pelton.job_sleeper s
            WHERE s.line = u.line AND s.at > clock_timestamp() - interval '15 seconds')
    LOOP
        IF pg_notification_queue_usage() < 0.5 AND (NOT alone OR pg_try_advisory_xact_lock(
            ('pelton.job_sleeper'::regclass::oid::bigint << 32) | (hashtext(l)::bigint & 4294967295))) THEN
            PERFORM pg_notify('pelton_wake', l);
        END IF;
    END LOOP;
END $$;

-- state_bit is the bit of a state in unique_states.
CREATE FUNCTION pelton.state_bit(state text) RETURNS smallint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (1 << (array_position(ARRAY['available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable',
        'running', 'scheduled'], state) - 1))::smallint
$$;

-- key_is_free tells whether a job gives up its unique key: it is gone, has ended in a state outside the key's states, stands
-- cancelled in the line, or waits for a retry while the key's states leave out retryable. Its answer may be out of date at once:
-- a retry makes the job live again. So whoever frees a key, or takes it over, locks the key's row first and asks after that, in a
-- new statement; and whoever makes a job live again writes its key's row (take_keys). Custom plans, so that one partition is
-- read, not all.
CREATE FUNCTION pelton.key_is_free(job bigint, states smallint) RETURNS boolean LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    last_run integer;
    ended pelton.outcome;
BEGIN
    SELECT a.run, a.outcome INTO last_run, ended FROM pelton.job_attempt a WHERE a.job_id = job ORDER BY a.run DESC LIMIT 1;
    IF ended IN ('completed', 'cancelled', 'discarded') THEN
        RETURN states & pelton.state_bit(ended::text) = 0;
    END IF;
    IF states & pelton.state_bit('cancelled') = 0
        AND pelton.voided(job, coalesce(last_run, 0) + 1) = 'cancelled'
        AND NOT pelton.is_leased(job, coalesce(last_run, 0) + 1) THEN
        RETURN true;
    END IF;
    IF states & pelton.state_bit('retryable') = 0
        AND EXISTS (SELECT FROM pelton.job_scheduled s WHERE s.job_id = job AND s.retry) THEN
        RETURN true;
    END IF;
    RETURN NOT EXISTS (SELECT FROM pelton.job j WHERE j.id = job)
        OR EXISTS (SELECT FROM pelton.job_void v WHERE v.job_id = job AND v.reason = 'deleted');
END $$;

-- take_keys takes unique keys for new jobs, in key order so that two callers cannot deadlock. Returns per key the job that
-- holds it now: the new one if it won. Needs READ COMMITTED to see a winner that committed meanwhile; a stricter level gets
-- the usual serialization failure. Waits only for a transaction that is just taking or giving up the same key.
-- A job that is to live again takes its key again even if its row is still there: the row is written, so that nobody who saw the
-- job ended can free the key (he waits for the row, skips it, or fails if his snapshot is older).
CREATE FUNCTION pelton.take_keys(keys bytea[], ids bigint[], states smallint[]) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    holders bigint[] := ids;
    k record;
    h pelton.job_unique;
BEGIN
    FOR k IN
        SELECT u.key, u.id, u.states, u.n FROM unnest(keys, ids, states) WITH ORDINALITY AS u(key, id, states, n)
        WHERE u.key IS NOT NULL ORDER BY u.key, u.n
    LOOP
        LOOP
            INSERT INTO pelton.job_unique (key, job_id, states) VALUES (k.key, k.id, k.states) ON CONFLICT DO NOTHING;
            EXIT WHEN FOUND;
            SELECT * INTO h FROM pelton.job_unique u WHERE u.key = k.key;
            CONTINUE WHEN NOT FOUND; -- given up meanwhile
            IF h.job_id = k.id THEN
                UPDATE pelton.job_unique u SET states = u.states WHERE u.key = k.key AND u.job_id = k.id;
                CONTINUE WHEN NOT FOUND;
            ELSIF NOT (h.job_id = ANY (ids)) AND pelton.key_is_free(h.job_id, h.states) THEN
                PERFORM FROM pelton.job_unique u WHERE u.key = k.key AND u.job_id = h.job_id FOR UPDATE;
                CONTINUE WHEN NOT FOUND;
                IF pelton.key_is_free(h.job_id, h.states) THEN
                    DELETE FROM pelton.job_unique u WHERE u.key = k.key AND u.job_id = h.job_id;
                    CONTINUE;
                END IF;
            END IF;
            holders[k.n] := h.job_id;
            EXIT;
        END LOOP;
    END LOOP;
    RETURN holders;
END $$;

-- insert_jobs appends jobs and puts each where it waits: the line, scheduled or parked. Arrays are in step; NULL arrays mean
-- the default throughout. tags are joined by commas. Checked by its callers (the Go client, enqueue); use enqueue from SQL.
-- alone: the transaction ends with this statement (see wake). Returns one row per job in order: its id, or the id of the job that holds its unique key, then skipped is true.
CREATE FUNCTION pelton.insert_jobs(kinds text[], args text[], queues text[], priorities smallint[],
    max_attempts smallint[], due timestamptz[], pending boolean[], metadata text[], tags text[],
    unique_keys bytea[], unique_states smallint[], hint boolean, alone boolean DEFAULT false)
RETURNS TABLE (id bigint, created_at timestamptz, state text, skipped boolean) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    at timestamptz := clock_timestamp();
    ids bigint[] := pelton.job_ids(cardinality(kinds));
    holders bigint[] := ids;
    lines text[];
BEGIN
    IF unique_keys IS NOT NULL THEN
        holders := pelton.take_keys(unique_keys, ids, unique_states);
    END IF;
    RETURN QUERY
    WITH input AS MATERIALIZED (
        SELECT u.*, CASE WHEN u.pending THEN 'pending' WHEN u.due > at THEN 'scheduled' ELSE 'available' END AS state
        FROM unnest(ids, holders, kinds, args, queues, priorities, max_attempts, due, pending, metadata, tags, unique_keys,
            unique_states) WITH ORDINALITY
            AS u(id, holder, kind, args, queue, priority, max_attempts, due, pending, metadata, tags, unique_key,
                unique_states, n)
    ), fresh AS (
        SELECT * FROM input WHERE id = holder
    ), job AS (
        INSERT INTO pelton.job (id, created_at, scheduled_at, priority, max_attempts, unique_states, kind, queue, args,
            metadata, tags, unique_key)
        SELECT id, at, due, priority, max_attempts, CASE WHEN unique_key IS NOT NULL THEN unique_states END, kind, queue,
            args::json, metadata::jsonb, string_to_array(tags, ','), unique_key
        FROM fresh ORDER BY n
    ), ready AS (
        INSERT INTO pelton.job_ready (priority, line, job_ids)
        SELECT priority, queue, array_agg(id ORDER BY n)
        FROM (SELECT f.id, f.n, f.queue, f.priority,
                (row_number() OVER line - 1) / least(100, greatest(1, (count(*) OVER (PARTITION BY f.queue, f.priority)) / 64))
                    AS ticket
            FROM fresh f WHERE f.state = 'available'
            WINDOW line AS (PARTITION BY f.queue, f.priority ORDER BY f.n)) t
        GROUP BY queue, priority, ticket ORDER BY min(n)
    ), scheduled AS (
        INSERT INTO pelton.job_scheduled (job_id, wake, due)
        SELECT id, greatest(due, clock_timestamp()), due FROM fresh WHERE state = 'scheduled'
    ), parked AS (
        INSERT INTO pelton.job_parked (job_id) SELECT id FROM fresh WHERE state = 'pending'
    )
    SELECT holder, at, state, id <> holder FROM input ORDER BY n;
    IF hint THEN
        PERFORM pelton.wake(queues, alone);
    END IF;
END $$;
