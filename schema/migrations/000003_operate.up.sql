-- What a person or a program does to jobs, queues and dead letters that exist. One implementation: the Go client and the
-- command line call these functions too. Each writes its audit row in the caller's transaction, and only if it changed
-- something, so that calling twice is harmless. actor is who asked, beside the database role: an OS user, an API user.
--
-- Errors have SQLSTATEs of their own: PL001 no such job or dead letter, PL002 the unique key is held by another job
-- (DETAIL: its id), PL003 the job works for a node of a flow, whose run decides when it runs again (DETAIL: run and node as JSON), PL004 the job cannot be
-- erased before it has ended, PL005 the job was erased, so there is nothing to run again. A bad value is 22023.
--
-- Who ends a run is decided by the key of job_attempt, never by what was read before: whoever inserts a row goes on, whoever
-- does not looks again. Whoever writes about a job that may have ended first keeps maintenance from moving its row
-- (lock_job_partition).

-- record_audit appends who changed what.
CREATE FUNCTION pelton.record_audit(actor text, action text, target text, before jsonb, after jsonb) RETURNS void
LANGUAGE sql VOLATILE AS $$
    INSERT INTO pelton.audit (actor, action, target, before, after) VALUES (actor, action, target, before, after)
$$;

-- hint sends a payload to all executors, unless the notification queue is filling up.
CREATE FUNCTION pelton.hint(payload text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF pg_notification_queue_usage() < 0.5 THEN
        PERFORM pg_notify('pelton_wake', payload);
    END IF;
END $$;

-- check_queue refuses a queue name that enqueueing refuses.
CREATE FUNCTION pelton.check_queue(queue_name text) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF length(queue_name) > 64 OR queue_name !~ '^[a-z0-9]+([_|-]?[a-z0-9]+)*$' THEN
        RAISE EXCEPTION 'queue name %: want up to 64 lower-case letters and digits, separated by single _ or -',
            quote_literal(queue_name) USING ERRCODE = '22023';
    END IF;
END $$;

-- is_leased tells whether some executor has taken this run.
CREATE FUNCTION pelton.is_leased(job bigint, job_run integer) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM pelton.job_lease l, unnest(l.job_ids, l.runs) AS u(id, run)
        WHERE job = ANY (l.job_ids) AND u.id = job AND coalesce(u.run, 1) = job_run)
$$;

-- voided tells why a run must not start, NULL if it may. A cancel and a deletion hold for their run and the one after it, so
-- that they cannot fall between a run's end and its retry; a move holds for its run alone.
CREATE FUNCTION pelton.voided(job bigint, job_run integer) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT v.reason FROM pelton.job_void v
    WHERE v.job_id = job AND (v.run = job_run OR v.run = job_run - 1 AND v.reason <> 'moved')
    ORDER BY v.reason = 'deleted' DESC, v.reason = 'cancelled' DESC LIMIT 1
$$;

-- free_keys gives up the unique keys of these jobs that a state does not keep, if they are free still. Rows that somebody holds
-- are skipped: their holder is taking the key over. Needs READ COMMITTED, or jobs that the caller's transaction has ended.
CREATE FUNCTION pelton.free_keys(ids bigint[], job_state text) RETURNS void LANGUAGE sql VOLATILE AS $$
    WITH locked AS MATERIALIZED (
        SELECT u.ctid AS tid, u.job_id, u.states FROM pelton.job_unique u
        WHERE u.job_id = ANY (ids) AND u.states & pelton.state_bit(job_state) = 0
        ORDER BY u.key FOR UPDATE SKIP LOCKED
    )
    DELETE FROM pelton.job_unique WHERE ctid = ANY (ARRAY(
        SELECT l.tid FROM locked l WHERE pelton.key_is_free(l.job_id, l.states)))
$$;

-- leave_place takes a job out of scheduled or parked and tells under which run it waited; waited is false if it was in neither.
-- It waits for a duty that is just moving the job on.
CREATE FUNCTION pelton.leave_place(job bigint, OUT waited boolean, OUT state text, OUT run integer, OUT attempts smallint)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM pelton.job_scheduled s WHERE s.job_id = job
    RETURNING true, CASE WHEN s.retry THEN 'retryable' ELSE 'scheduled' END, s.run, s.attempts
    INTO waited, state, run, attempts;
    IF waited IS NULL THEN
        DELETE FROM pelton.job_parked p WHERE p.job_id = job
        RETURNING true, 'pending', p.run, p.attempts INTO waited, state, run, attempts;
    END IF;
    waited := waited IS NOT NULL;
END $$;

-- last_run is a job's newest attempt: run 0 and no outcome if it has none. Fails with PL001 if there is no such job.
CREATE FUNCTION pelton.last_run(job bigint, OUT run integer, OUT outcome pelton.outcome, OUT attempt smallint)
LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    SELECT a.run, a.outcome, a.attempt INTO run, outcome, attempt
    FROM pelton.job_attempt a WHERE a.job_id = job ORDER BY a.run DESC LIMIT 1;
    IF run IS NULL THEN
        run := 0;
        attempt := 0;
    END IF;
    IF NOT EXISTS (SELECT FROM pelton.job j WHERE j.id = job) THEN
        RAISE EXCEPTION 'job % not found', job USING ERRCODE = 'PL001';
    END IF;
END $$;

-- enter_line puts a run into the line that the job's queue says now.
CREATE FUNCTION pelton.enter_line(job bigint, job_run integer, attempts smallint) RETURNS void LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    at_queue text;
    at_priority smallint;
BEGIN
    SELECT coalesce(c.queue, j.queue), coalesce(c.priority, j.priority) INTO at_queue, at_priority
    FROM pelton.job j LEFT JOIN pelton.job_change c ON c.job_id = j.id WHERE j.id = job;
    INSERT INTO pelton.job_ready (priority, line, job_ids, runs, attempts)
    VALUES (at_priority, at_queue, ARRAY[job], ARRAY[job_run], ARRAY[attempts]);
    PERFORM pelton.wake(ARRAY[at_queue]);
END $$;

-- cancel ends a job that waits, and asks a running one to end. Returns its state afterwards: a job that had ended keeps its
-- state; 'running' means that its executor is told now, and by its next heartbeat at the latest.
--
-- If the job changes places while the calling transaction is open (its run fails, say, and is put off), the cancel still
-- holds: it is looked up by whoever schedules the retry, takes the ticket or sweeps. Calling once more after the commit makes
-- that quick; JobCancel does.
CREATE FUNCTION pelton.cancel(job bigint, actor text DEFAULT NULL) RETURNS text LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    place record;
    last record;
    was text;
    fresh boolean := false;
BEGIN
    FOR look IN 1..2 LOOP
        place := pelton.leave_place(job);
        IF place.waited THEN
            INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt)
            VALUES (job, place.run, 'cancelled', place.attempts) ON CONFLICT DO NOTHING;
            CONTINUE WHEN NOT FOUND;
            DELETE FROM pelton.job_void v WHERE v.job_id = job AND v.run BETWEEN place.run - 1 AND place.run;
            PERFORM pelton.free_keys(ARRAY[job], 'cancelled');
            PERFORM pelton.record_audit(actor, 'job.cancel', job::text, jsonb_build_object('state', place.state),
                jsonb_build_object('state', 'cancelled'));
            RETURN 'cancelled';
        END IF;
        last := pelton.last_run(job);
        IF last.outcome IN ('completed', 'cancelled', 'discarded') THEN
            RETURN last.outcome::text;
        END IF;
        EXIT WHEN fresh OR pelton.voided(job, last.run + 1) = 'cancelled';
        INSERT INTO pelton.job_void AS v (job_id, run, reason) VALUES (job, last.run + 1, 'cancelled')
        ON CONFLICT (job_id, run) DO UPDATE SET reason = 'cancelled', at = clock_timestamp() WHERE v.reason = 'moved';
        fresh := true;
    END LOOP;
    was := CASE WHEN pelton.is_leased(job, last.run + 1) THEN 'running' ELSE 'available' END;
    IF was = 'running' THEN
        PERFORM pelton.hint('cancel:' || job);
    ELSE
        PERFORM pelton.free_keys(ARRAY[job], 'cancelled');
    END IF;
    IF fresh THEN
        PERFORM pelton.record_audit(actor, 'job.cancel', job::text, jsonb_build_object('state', was),
            jsonb_build_object('state', 'cancelled', 'run', last.run + 1));
    END IF;
    RETURN CASE was WHEN 'running' THEN was ELSE 'cancelled' END;
END $$;

-- retake_key takes a job's unique key again, or fails with PL002 if another job holds it.
CREATE FUNCTION pelton.retake_key(job bigint) RETURNS void LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    wanted record;
    holder bigint;
BEGIN
    SELECT j.unique_key, j.unique_states INTO wanted FROM pelton.job j WHERE j.id = job;
    IF wanted.unique_key IS NULL THEN
        RETURN;
    END IF;
    holder := (pelton.take_keys(ARRAY[wanted.unique_key], ARRAY[job], ARRAY[wanted.unique_states]))[1];
    IF holder <> job THEN
        RAISE EXCEPTION 'job % cannot be retried: job % holds its unique key', job, holder
            USING ERRCODE = 'PL002', DETAIL = holder::text;
    END IF;
END $$;

-- raise_max_attempts makes room for one more attempt if they are used up.
CREATE FUNCTION pelton.raise_max_attempts(job bigint, used smallint) RETURNS void LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    INSERT INTO pelton.job_change AS c (job_id, max_attempts)
    SELECT j.id, used + 1 FROM pelton.job j LEFT JOIN pelton.job_change c ON c.job_id = j.id
    WHERE j.id = job AND coalesce(c.max_attempts, j.max_attempts) <= used
    ON CONFLICT (job_id) DO UPDATE SET max_attempts = excluded.max_attempts, changed_at = clock_timestamp()
    WHERE c.max_attempts IS NULL OR c.max_attempts < excluded.max_attempts;
END $$;

-- refuse_node fails with PL003 if a job works for a node of a flow's run: outside of its run the node would run unseen by it, and perhaps
-- twice at once. label says what is refused.
CREATE FUNCTION pelton.refuse_node(label text, metadata jsonb) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    mark jsonb := metadata -> 'pelton:flow';
    node text := coalesce(mark ->> 'path', mark ->> 'node');
BEGIN
    IF mark ->> 'run' IS NULL THEN
        RETURN;
    END IF;
    RAISE EXCEPTION '% works for node % of run %: use pelton flow retry %', label, node, mark ->> 'run', mark ->> 'run'
        USING ERRCODE = 'PL003', DETAIL = jsonb_build_object('run', mark -> 'run', 'node', node)::text;
END $$;

-- erase_lock is the key of the advisory lock that keeps a job from being erased and revived at once.
CREATE FUNCTION pelton.erase_lock(job bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (1346720341::bigint << 32) | (job & 4294967295)
$$;

-- refuse_erased keeps a job from being erased until the transaction ends, and fails with PL005 if it was.
CREATE FUNCTION pelton.refuse_erased(job bigint) RETURNS void LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(pelton.erase_lock(job));
    IF EXISTS (SELECT FROM pelton.job j WHERE j.id = job AND j.metadata ? 'pelton:erased') THEN
        RAISE EXCEPTION 'job % was erased: there is nothing to run again', job USING ERRCODE = 'PL005';
    END IF;
END $$;

-- run_again records the uncounted row 'retried' for a job whose newest run has ended it, and puts the run after it into the
-- line. The row decides: of two retries at once one does it, the other returns false.
CREATE FUNCTION pelton.run_again(job bigint, ended_run integer, attempts smallint) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pelton.refuse_erased(job);
    PERFORM pelton.retake_key(job);
    INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt) VALUES (job, ended_run + 1, 'retried', attempts)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM pelton.job_dead d WHERE d.job_id = job;
    PERFORM pelton.raise_max_attempts(job, attempts);
    PERFORM pelton.enter_line(job, ended_run + 2, attempts);
    RETURN true;
END $$;

-- retry makes a job available now: one that has ended runs once more (and may use one attempt more if they are used up), one
-- that waits for a time or for somebody does not wait any longer, one that was cancelled in the line is taken back into it.
-- A running job is left alone. Returns the state afterwards. Two retries at once are one. Fails with PL002 if another job
-- holds the job's unique key meanwhile, and with PL003 if the job has ended and worked for a node of a flow; the next attempt of one that
-- waits for it may be hurried, since its run waits for it too.
CREATE FUNCTION pelton.retry(job bigint, actor text DEFAULT NULL) RETURNS text LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    place record;
    last record;
    was text;
BEGIN
    PERFORM pelton.lock_job_partition(job);
    place := pelton.leave_place(job);
    IF place.waited THEN
        PERFORM pelton.retake_key(job);
        DELETE FROM pelton.job_void v WHERE v.job_id = job AND v.run BETWEEN place.run - 1 AND place.run; -- no ticket has it
        PERFORM pelton.enter_line(job, place.run, place.attempts);
        was := place.state;
    ELSE
        FOR look IN 1..2 LOOP
            last := pelton.last_run(job);
            IF last.outcome IN ('completed', 'cancelled', 'discarded') THEN
                PERFORM pelton.refuse_node('job ' || job, (SELECT j.metadata FROM pelton.job j WHERE j.id = job));
                IF pelton.run_again(job, last.run, last.attempt) THEN
                    was := last.outcome::text;
                END IF;
                EXIT;
            END IF;
            IF pelton.is_leased(job, last.run + 1) THEN
                RETURN 'running';
            END IF;
            EXIT WHEN pelton.voided(job, last.run + 1) IS DISTINCT FROM 'cancelled';
            PERFORM pelton.refuse_node('job ' || job, (SELECT j.metadata FROM pelton.job j WHERE j.id = job));
            -- It stands cancelled in the line. That is recorded first; the ticket that is still there finds its run ended.
            INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt)
            VALUES (job, last.run + 1, 'cancelled', last.attempt) ON CONFLICT DO NOTHING;
        END LOOP;
    END IF;
    IF was IS NOT NULL THEN
        PERFORM pelton.record_audit(actor, 'job.retry', job::text, jsonb_build_object('state', was),
            jsonb_build_object('state', 'available'));
    END IF;
    RETURN 'available';
END $$;

-- change sets what is not NULL: queue and priority (the job moves to another line), max attempts, args; metadata is merged into
-- the job's. A run that has been taken goes on as it is; what was changed counts from the next run on. No ticket is written
-- here: whoever takes the old one ends it as 'moved' and puts the job into its new line. Returns the run that the change
-- counts for: if that has passed when the calling transaction commits, calling once more moves the job again; JobUpdate does.
CREATE FUNCTION pelton.change(job bigint, new_queue text DEFAULT NULL, new_priority integer DEFAULT NULL,
    new_max_attempts integer DEFAULT NULL, new_args json DEFAULT NULL, new_metadata jsonb DEFAULT NULL,
    actor text DEFAULT NULL)
RETURNS integer LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    held boolean;
    last record;
    old record;
    others boolean; -- args are other than they were
BEGIN
    PERFORM pelton.check_queue(new_queue);
    IF new_priority NOT BETWEEN 1 AND 4 THEN
        RAISE EXCEPTION 'priority is %, want 1 to 4', new_priority USING ERRCODE = '22023';
    END IF;
    IF new_max_attempts NOT BETWEEN 1 AND 32767 THEN
        RAISE EXCEPTION 'max attempts is %, want 1 to 32767', new_max_attempts USING ERRCODE = '22023';
    END IF;
    IF jsonb_typeof(new_metadata) <> 'object' THEN
        RAISE EXCEPTION 'metadata is not a JSON object' USING ERRCODE = '22023';
    END IF;
    PERFORM pelton.lock_job_partition(job);
    -- While a row here is locked, no duty can put the job into the line it is leaving.
    SELECT true INTO held FROM pelton.job_scheduled s WHERE s.job_id = job FOR UPDATE;
    IF held IS NULL THEN
        SELECT true INTO held FROM pelton.job_parked p WHERE p.job_id = job FOR UPDATE;
    END IF;
    last := pelton.last_run(job);
    SELECT coalesce(c.args, j.args)::text <> new_args::text INTO others FROM pelton.job j LEFT JOIN pelton.job_change c ON c.job_id = j.id WHERE j.id = job;
    SELECT coalesce(c.queue, j.queue) AS queue, coalesce(c.priority, j.priority) AS priority,
        coalesce(c.max_attempts, j.max_attempts) AS max_attempts,
        CASE WHEN new_args IS NOT NULL THEN length(coalesce(c.args, j.args)::text) END AS args_bytes INTO old
    FROM pelton.job j LEFT JOIN pelton.job_change c ON c.job_id = j.id WHERE j.id = job;

    INSERT INTO pelton.job_change AS c (job_id, queue, priority, max_attempts, args, metadata)
    VALUES (job, new_queue, new_priority, new_max_attempts, new_args, new_metadata)
    ON CONFLICT (job_id) DO UPDATE SET changed_at = clock_timestamp(), queue = coalesce(excluded.queue, c.queue),
        priority = coalesce(excluded.priority, c.priority), max_attempts = coalesce(excluded.max_attempts, c.max_attempts),
        args = coalesce(excluded.args, c.args),
        metadata = CASE WHEN excluded.metadata IS NULL THEN c.metadata ELSE coalesce(c.metadata, '{}') || excluded.metadata END;

    IF held IS NULL AND (new_queue <> old.queue OR new_priority <> old.priority)
        AND (last.outcome IS NULL OR last.outcome NOT IN ('completed', 'cancelled', 'discarded'))
        AND NOT pelton.is_leased(job, last.run + 1) THEN
        INSERT INTO pelton.job_void (job_id, run, reason) VALUES (job, last.run + 1, 'moved') ON CONFLICT DO NOTHING;
    END IF;
    -- A worker that stores its output while it runs changes nothing that was asked: no audit.
    IF coalesce(new_queue, new_priority::text, new_max_attempts::text, new_args::text) IS NOT NULL
        OR new_metadata - 'output' <> '{}' THEN
        PERFORM pelton.record_audit(actor, 'job.update', job::text, jsonb_strip_nulls(to_jsonb(old)), jsonb_strip_nulls(jsonb_build_object(
            'queue', new_queue, 'priority', new_priority, 'max_attempts', new_max_attempts,
            'args_bytes', length(new_args::text), 'args_changed', others, 'metadata_keys', (SELECT jsonb_agg(k) FROM jsonb_object_keys(new_metadata) k))));
    END IF;
    RETURN last.run + 1;
END $$;

-- move_again is for a caller of change whose transaction has committed: if the job has entered a further run meanwhile, maybe
-- into the line it was to leave, that run moves too.
CREATE FUNCTION pelton.move_again(job bigint, moved_run integer) RETURNS void LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    last record := pelton.last_run(job);
BEGIN
    IF last.run + 1 > moved_run AND (last.outcome NOT IN ('completed', 'cancelled', 'discarded', 'moved'))
        AND NOT EXISTS (SELECT FROM pelton.job_scheduled s WHERE s.job_id = job)
        AND NOT EXISTS (SELECT FROM pelton.job_parked p WHERE p.job_id = job)
        AND NOT pelton.is_leased(job, last.run + 1) THEN
        INSERT INTO pelton.job_void (job_id, run, reason) VALUES (job, last.run + 1, 'moved') ON CONFLICT DO NOTHING;
    END IF;
END $$;

-- remove_job is delete_job, but returns 'missing' if there is no such job.
CREATE FUNCTION pelton.remove_job(job bigint, actor text DEFAULT NULL) RETURNS text LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    place record;
    last record;
    was text;
    gone record;
BEGIN
    PERFORM pelton.lock_job_partition(job);
    IF NOT EXISTS (SELECT FROM pelton.job j WHERE j.id = job) THEN
        RETURN 'missing';
    END IF;
    last := pelton.last_run(job);
    IF last.outcome IN ('completed', 'cancelled', 'discarded') THEN
        was := last.outcome::text;
    ELSE
        place := pelton.leave_place(job);
        IF place.waited THEN
            was := place.state;
        ELSE
            last := pelton.last_run(job);
            IF pelton.is_leased(job, last.run + 1) THEN
                RETURN 'running';
            END IF;
            was := CASE WHEN pelton.voided(job, last.run + 1) = 'cancelled' THEN 'cancelled' ELSE 'available' END;
            INSERT INTO pelton.job_void AS v (job_id, run, reason) VALUES (job, last.run + 1, 'deleted')
            ON CONFLICT (job_id, run) DO UPDATE SET reason = 'deleted';
        END IF;
    END IF;
    DELETE FROM pelton.job j WHERE j.id = job RETURNING j.kind, j.queue, j.created_at INTO gone;
    IF gone.kind IS NULL THEN
        RETURN 'missing'; -- somebody else was quicker
    END IF;
    DELETE FROM pelton.job_attempt a WHERE a.job_id = job;
    DELETE FROM pelton.job_change c WHERE c.job_id = job;
    DELETE FROM pelton.job_unique WHERE ctid = ANY (ARRAY(
        SELECT u.ctid FROM pelton.job_unique u WHERE u.job_id = job ORDER BY u.key FOR UPDATE SKIP LOCKED));
    PERFORM pelton.record_audit(actor, 'job.delete', job::text, jsonb_build_object('state', was, 'kind', gone.kind,
        'queue', gone.queue, 'created_at', gone.created_at), NULL);
    RETURN was;
END $$;

-- delete_job removes a job with its attempts, changes and keys; its log and its dead letter stay until their retention.
-- Returns the state it had: 'running' means that it was left alone. A job in the line leaves a void, so that its ticket is not
-- missed; a run that is being taken in this very moment may still happen once, and is recorded nowhere.
CREATE FUNCTION pelton.delete_job(job bigint, actor text DEFAULT NULL) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    was text := pelton.remove_job(job, actor);
BEGIN
    IF was = 'missing' THEN
        RAISE EXCEPTION 'job % not found', job USING ERRCODE = 'PL001';
    END IF;
    RETURN was;
END $$;

-- erase_job blanks what a job that has ended held, in place, since rows are few: args, tags, metadata, unique key, outputs, errors, logs, what was
-- changed, its dead letter, what audit and answers of the API hold of it; of a node of a flow, also what its run and its row have of it. Jobs that
-- are one with it by a redrive, in either direction, are erased with it. What stays: id, kind, queue, times, outcomes. Erased jobs do not run again
-- (PL005). Returns what was blanked: {"jobs": [ids], "attempts", "log_chunks", "dead_letters", "nodes", "runs", "answers"}; all 0 the second time. Fails with PL004 if
-- one of the jobs, or the run it works for, has not ended.
CREATE FUNCTION pelton.erase_job(job bigint, actor text DEFAULT NULL) RETURNS jsonb LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    kin bigint[] := '{}';
    todo bigint[] := ARRAY[job];
    one bigint;
    meta jsonb;
    there boolean := false;
    last record;
    node record;
    run_ended timestamptz;
    blank json;
    n bigint;
    done bigint := 0;
    jobs bigint := 0;
    attempts bigint := 0;
    chunks bigint := 0;
    letters bigint := 0;
    nodes bigint := 0;
    runs bigint := 0;
    answers bigint := 0;
    result jsonb;
BEGIN
    -- The letters go first: whoever is just redriving one has committed then, and is found.
    WHILE todo <> '{}' LOOP
        FOREACH one IN ARRAY todo LOOP
            PERFORM pg_advisory_xact_lock(pelton.erase_lock(one));
            PERFORM pelton.lock_job_partition(one);
            DELETE FROM pelton.job_dead d WHERE d.job_id = one;
            GET DIAGNOSTICS n = ROW_COUNT;
            letters := letters + n;
        END LOOP;
        kin := kin || todo;
        SELECT coalesce(array_agg(DISTINCT k.id), '{}') INTO todo FROM (
            SELECT (a.after ->> 'job')::bigint AS id FROM pelton.audit a WHERE a.target = ANY (todo::text[]) AND a.action = 'dead.redrive'
            UNION ALL
            SELECT a.target::bigint FROM pelton.job j JOIN pelton.audit a ON a.target = j.metadata ->> 'redriven_from'
                AND a.action = 'dead.redrive' AND a.after ->> 'job' = j.id::text
            WHERE j.id = ANY (todo)
        ) k WHERE k.id <> ALL (kin);
    END LOOP;

    FOREACH one IN ARRAY kin LOOP
        SELECT j.metadata INTO meta FROM pelton.job j WHERE j.id = one;
        CONTINUE WHEN NOT FOUND;
        there := true;
        last := pelton.last_run(one);
        IF last.outcome IS NULL OR last.outcome NOT IN ('completed', 'cancelled', 'discarded') THEN
            RAISE EXCEPTION 'job % has not ended%: cancel it, or wait for its end, and erase it then', one,
                CASE WHEN one <> job THEN ', and was redriven with job ' || job ELSE '' END USING ERRCODE = 'PL004';
        END IF;
        CONTINUE WHEN meta #>> '{pelton:flow,run}' IS NULL;
        SELECT r.ended_at INTO run_ended FROM pelton.flow_run r WHERE r.id = (meta #>> '{pelton:flow,run}')::bigint FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
        IF run_ended IS NULL THEN
            RAISE EXCEPTION 'job % works for node % of run %, which has not ended: kill the run, or wait for its end, and erase the job then', one,
                coalesce(meta #>> '{pelton:flow,path}', meta #>> '{pelton:flow,node}'), meta #>> '{pelton:flow,run}' USING ERRCODE = 'PL004';
        END IF;
        SELECT f.run_id, f.no, f.path, f.template, f.reason INTO node FROM pelton.flow_node f
        WHERE f.run_id = (meta #>> '{pelton:flow,run}')::bigint AND f.no = (meta #>> '{pelton:flow,node}')::integer AND (f.job_id = one OR one = ANY (f.jobs));
        CONTINUE WHEN NOT FOUND;
        -- Its own row, and those that have its outputs in theirs: the for_each it is an instance of, and the embedded flows around it.
        UPDATE pelton.flow_node f SET outputs = NULL, reason = CASE WHEN f.reason IS NOT NULL THEN 'erased' END, item = CASE WHEN f.item IS NOT NULL THEN '' END
        WHERE f.run_id = node.run_id AND f.no = node.no AND (f.outputs IS NOT NULL OR f.reason <> 'erased' OR f.item <> '');
        GET DIAGNOSTICS n = ROW_COUNT;
        nodes := nodes + n;
        UPDATE pelton.flow_node f SET outputs = NULL
        WHERE f.run_id = node.run_id AND f.outputs IS NOT NULL AND (f.no = node.template OR starts_with(node.path, f.path || ':'));
        GET DIAGNOSTICS n = ROW_COUNT;
        nodes := nodes + n;
        UPDATE pelton.flow_report p SET output = NULL, error = NULL
        WHERE p.run_id = node.run_id AND p.job_id = one AND (p.output IS NOT NULL OR p.error IS NOT NULL);
        BEGIN
            SELECT (r.options::jsonb - 'params' - 'node_params')::json INTO blank FROM pelton.flow_run r WHERE r.id = node.run_id;
        EXCEPTION WHEN untranslatable_character OR numeric_value_out_of_range THEN
            blank := '{}';
        END;
        UPDATE pelton.flow_run r SET erased_at = coalesce(r.erased_at, clock_timestamp()), step = r.step + 1, options = blank,
            reason = CASE WHEN strpos(r.reason, node.path) > 0 THEN 'erased' ELSE r.reason END -- it names the node, and quotes why that failed
        WHERE r.id = node.run_id AND (r.erased_at IS NULL OR strpos(r.reason, node.path) > 0 AND r.reason <> 'erased');
        GET DIAGNOSTICS n = ROW_COUNT;
        runs := runs + n;
        UPDATE pelton.audit a SET after = a.after #- '{options,params}' #- '{options,node_params}'
        WHERE a.target = 'run ' || node.run_id AND a.action = 'flow.run' AND a.after -> 'options' ?| ARRAY['params', 'node_params'];
    END LOOP;

    UPDATE pelton.job j SET args = '{}', tags = NULL, unique_key = NULL, unique_states = NULL,
        metadata = jsonb_strip_nulls(jsonb_build_object('pelton:erased', clock_timestamp(), 'pelton:flow', j.metadata -> 'pelton:flow',
            'redriven_from', j.metadata -> 'redriven_from'))
    WHERE j.id = ANY (kin) AND NOT coalesce(j.metadata ? 'pelton:erased', false);
    GET DIAGNOSTICS jobs = ROW_COUNT;
    UPDATE pelton.job_attempt a SET error = CASE WHEN a.error IS NOT NULL THEN 'erased' END, trace = NULL, output = NULL, metadata = NULL, carried = NULL
    WHERE a.job_id = ANY (kin) AND (a.error <> 'erased' OR a.trace IS NOT NULL OR a.output IS NOT NULL OR a.metadata IS NOT NULL OR a.carried IS NOT NULL);
    GET DIAGNOSTICS attempts = ROW_COUNT;
    UPDATE pelton.job_change c SET args = NULL, metadata = NULL WHERE c.job_id = ANY (kin) AND (c.args IS NOT NULL OR c.metadata IS NOT NULL);
    GET DIAGNOSTICS done = ROW_COUNT;
    DELETE FROM pelton.job_unique u WHERE u.job_id = ANY (kin);
    DELETE FROM pelton.job_log l WHERE l.job_id = ANY (kin);
    GET DIAGNOSTICS chunks = ROW_COUNT;
    UPDATE pelton.audit a SET before = a.before - 'error' WHERE a.target = ANY (kin::text[]) AND a.action = 'dead.discard' AND a.before ? 'error';
    -- Answers are kept for a day, so this reads few.
    UPDATE pelton.api_request q SET answer = (SELECT json_object_agg(e.key, e.value) FROM json_each(q.answer::json) e
            WHERE e.key NOT IN ('args', 'metadata', 'tags', 'output', 'errors'))::text
    WHERE EXISTS (SELECT FROM unnest(kin) k WHERE strpos(q.answer, k::text) > 0 AND q.answer::json ->> 'id' = k::text)
        AND strpos(q.answer, '"args"') > 0;
    GET DIAGNOSTICS answers = ROW_COUNT;

    IF NOT there AND letters + chunks + answers = 0 AND NOT EXISTS (SELECT FROM pelton.audit a WHERE a.target = job::text AND a.action = 'job.erase') THEN
        RAISE EXCEPTION 'job % not found', job USING ERRCODE = 'PL001';
    END IF;
    result := jsonb_build_object('jobs', kin, 'attempts', attempts, 'log_chunks', chunks, 'dead_letters', letters, 'nodes', nodes, 'runs', runs,
        'answers', answers);
    done := done + jobs + attempts + chunks + letters + nodes + runs + answers;
    IF done > 0 THEN
        PERFORM pelton.record_audit(actor, 'job.erase', job::text, NULL, result);
    END IF;
    RETURN result || jsonb_build_object('changed', done > 0);
END $$;
COMMENT ON FUNCTION pelton.erase_job(bigint, text) IS
    'Blanks what an ended job held (args, outputs, errors, logs, ...) in all places, for privacy.';

-- honour_voids ends runs whose tickets the caller has taken (and leased) and which must not start. Arrays are in step;
-- attempts are those counted before the run. Per run one row comes back:
--   cancelled, moved  recorded now; a moved job is in its new line under run + 1
--   deleted           nothing is left of it
--   refused           somebody else has ended this run
--   none              no void holds any more: the run may start
-- Voids and unique keys of what was ended are for the caller to drop after the commit (drop_voids).
CREATE FUNCTION pelton.honour_voids(jobs bigint[], job_runs integer[], counted smallint[])
RETURNS TABLE (job_id bigint, run integer, outcome text) LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    lines text[];
    low bigint;
    high bigint;
BEGIN
    SELECT min(i), max(i) INTO low, high FROM unnest(jobs) i;
    RETURN QUERY
    WITH input AS MATERIALIZED (
        SELECT u.job, u.run, u.attempts, pelton.voided(u.job, u.run) AS reason
        FROM unnest(jobs, job_runs, counted) AS u(job, run, attempts)
    ), ended AS (
        INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt)
        SELECT i.job, i.run, i.reason::pelton.outcome, i.attempts FROM input i
        WHERE i.reason IN ('cancelled', 'moved') ORDER BY i.job, i.run
        ON CONFLICT DO NOTHING RETURNING job_id, run, outcome, attempt
    ), ready AS (
        INSERT INTO pelton.job_ready (priority, line, job_ids, runs, attempts)
        SELECT t.priority, t.line, array_agg(t.job_id ORDER BY t.n), array_agg(t.run + 1 ORDER BY t.n),
            array_agg(t.attempt ORDER BY t.n)
        FROM (
            SELECT e.*, coalesce(c.queue, j.queue) AS line, coalesce(c.priority, j.priority) AS priority,
                row_number() OVER (PARTITION BY coalesce(c.queue, j.queue), coalesce(c.priority, j.priority)
                    ORDER BY e.job_id) - 1 AS n
            FROM ended e JOIN pelton.job j ON j.id = e.job_id AND j.id BETWEEN low AND high
            LEFT JOIN pelton.job_change c ON c.job_id = e.job_id
            WHERE e.outcome = 'moved'
        ) t
        GROUP BY t.priority, t.line, t.n / 100
    )
    SELECT i.job, i.run, CASE WHEN i.reason IS NULL THEN 'none' WHEN i.reason = 'deleted' THEN i.reason
        ELSE coalesce(e.outcome::text, 'refused') END
    FROM input i LEFT JOIN ended e ON e.job_id = i.job AND e.run = i.run;
    SELECT array_agg(DISTINCT c.queue) INTO lines
    FROM pelton.job_change c WHERE c.job_id = ANY (jobs) AND c.queue IS NOT NULL;
    PERFORM pelton.wake(lines);
END $$;

-- drop_voids removes what held for runs that have ended, and gives up the unique keys of jobs that were cancelled. outcomes are
-- those of honour_voids, or how the last run of a job ended: a void that was turned into another meanwhile stays. Rows that somebody holds are left to the sweep.
CREATE FUNCTION pelton.drop_voids(jobs bigint[], job_runs integer[], outcomes text[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    DELETE FROM pelton.job_void WHERE ctid = ANY (ARRAY(
        SELECT v.ctid FROM pelton.job_void v
        JOIN unnest(jobs, job_runs, outcomes) AS u(job, run, outcome) ON v.job_id = u.job AND v.run BETWEEN u.run - 1 AND u.run
        WHERE CASE u.outcome WHEN 'moved' THEN v.reason = 'moved' AND v.run = u.run
            WHEN 'deleted' THEN true WHEN 'none' THEN false ELSE v.reason <> 'deleted' END
        ORDER BY v.job_id, v.run FOR UPDATE OF v SKIP LOCKED));
    PERFORM pelton.free_keys(ARRAY(SELECT u.job FROM unnest(jobs, outcomes) AS u(job, outcome) WHERE u.outcome = 'cancelled'),
        'cancelled');
END $$;

-- cancel_waiting ends jobs that wait for their time although a cancel or a deletion holds for their run: those given (what a
-- finish has just put off), or all if ids is NULL (the sweep). Returns what it cancelled, for drop_voids.
CREATE FUNCTION pelton.cancel_waiting(ids bigint[] DEFAULT NULL) RETURNS TABLE (job_id bigint, run integer)
LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH doomed AS MATERIALIZED (
        SELECT s.job_id, pelton.voided(s.job_id, s.run) AS reason FROM pelton.job_scheduled s
        WHERE s.job_id IN (SELECT v.job_id FROM pelton.job_void v
                WHERE v.reason <> 'moved' AND (ids IS NULL OR v.job_id = ANY (ids)))
            AND pelton.voided(s.job_id, s.run) IN ('cancelled', 'deleted')
        ORDER BY s.job_id FOR UPDATE OF s SKIP LOCKED
    ), left_place AS (
        DELETE FROM pelton.job_scheduled s USING doomed d WHERE s.job_id = d.job_id
        RETURNING s.job_id, s.run, s.attempts, d.reason
    )
    INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt)
    SELECT l.job_id, l.run, 'cancelled', l.attempts FROM left_place l WHERE l.reason = 'cancelled' ORDER BY l.job_id
    ON CONFLICT DO NOTHING RETURNING job_id, run;
END $$;

-- honour_in_line ends runs of these jobs that must not start and still wait in the line: for lines that nobody claims from, as
-- their queue is paused or has no executor. It takes their tickets as a claim does, skipping those that somebody holds, puts
-- the rest of each back under its seq, and ends the runs in the same transaction, so it needs no lease. Reads the line whole.
-- Returns what honour_voids does.
CREATE FUNCTION pelton.honour_in_line(ids bigint[]) RETURNS TABLE (job_id bigint, run integer, outcome text)
LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    taken record;
    again record;
BEGIN
    WITH head AS MATERIALIZED (
        SELECT r.ctid AS tid FROM pelton.job_ready r
        WHERE r.ctid = ANY (ARRAY(SELECT w.ctid FROM pelton.job_ready w, unnest(w.job_ids) AS u(id)
            WHERE u.id IN (SELECT unnest(ids))))
        FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM pelton.job_ready WHERE ctid = ANY (ARRAY(SELECT tid FROM head))
        RETURNING seq, entered_at, priority, line, job_ids, runs, attempts
    ), each AS MATERIALIZED (
        SELECT g.seq, g.entered_at, g.priority, g.line, u.id, coalesce(u.run, 1) AS run, coalesce(u.attempts, 0::smallint) AS attempts,
            u.n, pelton.voided(u.id, coalesce(u.run, 1)) IS NOT NULL AS doomed
        FROM gone g, unnest(g.job_ids, g.runs, g.attempts) WITH ORDINALITY AS u(id, run, attempts, n)
    ), rest AS (
        INSERT INTO pelton.job_ready (seq, entered_at, priority, line, job_ids, runs, attempts)
        SELECT e.seq, e.entered_at, e.priority, e.line, array_agg(e.id ORDER BY e.n), array_agg(e.run ORDER BY e.n),
            array_agg(e.attempts ORDER BY e.n)
        FROM each e WHERE NOT e.doomed GROUP BY e.seq, e.entered_at, e.priority, e.line
    )
    SELECT array_agg(e.id) AS ids, array_agg(e.run) AS runs, array_agg(e.attempts) AS attempts INTO taken FROM each e WHERE e.doomed;
    FOR again IN
        SELECT h.job_id, h.run, h.outcome, t.attempts
        FROM pelton.honour_voids(taken.ids, taken.runs, taken.attempts) h
        JOIN unnest(taken.ids, taken.runs, taken.attempts) AS t(id, run, attempts) ON t.id = h.job_id AND t.run = h.run
    LOOP
        IF again.outcome = 'none' THEN
            PERFORM pelton.enter_line(again.job_id, again.run, again.attempts);
        END IF;
        job_id := again.job_id;
        run := again.run;
        outcome := again.outcome;
        RETURN NEXT;
    END LOOP;
END $$;

-- sweep_voids removes voids whose run has ended and whose ticket nobody has any more, at most n of those older than grace.
-- Reads the line and the leases whole. Returns how many it removed.
CREATE FUNCTION pelton.sweep_voids(grace interval DEFAULT '1 minute', n integer DEFAULT 1000) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    removed bigint;
BEGIN
    WITH old AS MATERIALIZED (
        SELECT v.job_id, v.run, v.reason FROM pelton.job_void v WHERE v.at < clock_timestamp() - grace ORDER BY v.at LIMIT n
    ), waits AS MATERIALIZED (
        SELECT u.id, coalesce(u.run, 1) AS run FROM pelton.job_ready r, unnest(r.job_ids, r.runs) AS u(id, run)
        WHERE u.id IN (SELECT o.job_id FROM old o)
        UNION ALL
        SELECT u.id, coalesce(u.run, 1) FROM pelton.job_lease l, unnest(l.job_ids, l.runs) AS u(id, run)
        WHERE u.id IN (SELECT o.job_id FROM old o)
        UNION ALL
        SELECT s.job_id, s.run FROM pelton.job_scheduled s WHERE s.job_id = ANY (ARRAY(SELECT o.job_id FROM old o))
        UNION ALL
        SELECT p.job_id, p.run FROM pelton.job_parked p WHERE p.job_id = ANY (ARRAY(SELECT o.job_id FROM old o))
    ), gone AS (
        DELETE FROM pelton.job_void v USING old o
        WHERE v.job_id = o.job_id AND v.run = o.run AND v.reason = o.reason
            AND NOT EXISTS (SELECT FROM waits w WHERE w.id = o.job_id
                AND (w.run = o.run OR w.run = o.run + 1 AND o.reason <> 'moved'))
        RETURNING v.job_id
    )
    SELECT count(*) INTO removed FROM gone;
    RETURN removed;
END $$;

-- pause_queue and resume_queue: '*' means all. Executors learn it by a hint, and by their heartbeat. Pausing needs no known
-- queue; resuming '*' resumes every queue. Both are idempotent.
CREATE FUNCTION pelton.pause_queue(queue_name text, actor text DEFAULT NULL) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    at timestamptz := clock_timestamp();
BEGIN
    IF queue_name <> '*' THEN
        PERFORM pelton.check_queue(queue_name);
    END IF;
    INSERT INTO pelton.queue AS q (name, paused_at) VALUES (queue_name, at)
    ON CONFLICT (name) DO UPDATE SET paused_at = at, updated_at = at WHERE q.paused_at IS NULL;
    IF FOUND THEN
        PERFORM pelton.hint('queue:' || queue_name);
        PERFORM pelton.record_audit(actor, 'queue.pause', queue_name, '{"paused": false}', '{"paused": true}');
    END IF;
END $$;
CREATE FUNCTION pelton.resume_queue(queue_name text, actor text DEFAULT NULL) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE pelton.queue q SET paused_at = NULL, updated_at = clock_timestamp()
    WHERE (q.name = queue_name OR queue_name = '*') AND q.paused_at IS NOT NULL;
    IF FOUND THEN
        PERFORM pelton.hint('queue:' || queue_name);
        PERFORM pelton.record_audit(actor, 'queue.resume', queue_name, '{"paused": true}', '{"paused": false}');
    END IF;
END $$;

-- job_rows are jobs as JobGet returns them: what was asked, what was changed since, where they are, and what their runs left.
-- The places are asked in turn and the line last and without a look, so that a job is found without reading the line;
-- lost_jobs is the audit that really looks. The plan holds the partitions between the least and the greatest id only; it is
-- not shown the array, because it would compare every element with every partition.
-- attempts are those counted before the run that waits or goes on; errors are [{"at", "attempt", "error", "trace"}].
CREATE FUNCTION pelton.job_rows(ids bigint[])
RETURNS TABLE (id bigint, kind text, queue text, priority smallint, state text, run integer, attempts smallint,
    max_attempts smallint, args json, metadata jsonb, output json, tags text[], created_at timestamptz, scheduled_at timestamptz,
    attempted_at timestamptz, attempted_by text[], finalized_at timestamptz, errors jsonb, unique_key bytea,
    unique_states smallint)
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    low bigint;
    high bigint;
BEGIN
    SELECT min(i), max(i) INTO low, high FROM unnest(ids) i;
    RETURN QUERY
    WITH ended AS MATERIALIZED (
        SELECT a.* FROM pelton.job_attempt a WHERE a.job_id = ANY ((SELECT ids)::bigint[]) AND a.job_id BETWEEN low AND high
    ), last AS (
        SELECT DISTINCT ON (e.job_id) e.job_id, e.run, e.outcome, e.attempt, e.ended_at, e.due,
            e.outcome IN ('completed', 'cancelled', 'discarded') AS final
        FROM ended e ORDER BY e.job_id, e.run DESC
    ), history AS (
        SELECT e.job_id, max(e.started_at) AS started_at,
            array_agg(coalesce(x.name, 'executor ' || e.executor) ORDER BY e.run)
                FILTER (WHERE e.started_at IS NOT NULL AND e.executor IS NOT NULL) AS names,
            jsonb_agg(jsonb_build_object('at', e.ended_at, 'attempt', e.attempt, 'error', e.error, 'trace', coalesce(e.trace, ''))
                ORDER BY e.run) FILTER (WHERE e.error IS NOT NULL) AS errors
        FROM ended e LEFT JOIN pelton.executor x ON x.id = e.executor GROUP BY e.job_id
    ), leased AS MATERIALIZED (
        SELECT u.id, coalesce(u.run, 1) AS run, l.claimed_at, coalesce(x.name, 'executor ' || l.executor) AS name
        FROM pelton.job_lease l CROSS JOIN unnest(l.job_ids, l.runs) AS u(id, run) LEFT JOIN pelton.executor x ON x.id = l.executor
        WHERE u.id = ANY ((SELECT ids)::bigint[])
    )
    SELECT j.id, j.kind, coalesce(c.queue, j.queue), coalesce(c.priority, j.priority),
        CASE WHEN last.final THEN last.outcome::text
            WHEN s.retry THEN 'retryable' WHEN NOT s.retry THEN 'scheduled' WHEN p.job_id IS NOT NULL THEN 'pending'
            WHEN l.id IS NOT NULL THEN 'running' WHEN v.at IS NOT NULL THEN 'cancelled' ELSE 'available' END,
        coalesce(last.run, 0) + CASE WHEN last.final THEN 0 ELSE 1 END, coalesce(last.attempt, 0::smallint),
        coalesce(c.max_attempts, j.max_attempts), coalesce(c.args, j.args),
        coalesce((SELECT jsonb_object_agg(f.key, f.value ORDER BY m.at, m.run)
            FROM (SELECT j.metadata, '-infinity'::timestamptz AS at, 0 AS run
                UNION ALL SELECT e.metadata, e.ended_at, e.run FROM ended e WHERE e.job_id = j.id AND e.metadata IS NOT NULL
                UNION ALL SELECT c.metadata, c.changed_at, 2147483647) m, jsonb_each(m.metadata) f), '{}'),
        (SELECT e.output FROM ended e WHERE e.job_id = j.id AND e.output IS NOT NULL
            AND (c.metadata IS NULL OR NOT c.metadata ? 'output' OR e.ended_at > c.changed_at) ORDER BY e.run DESC LIMIT 1),
        coalesce(j.tags, '{}'), j.created_at,
        coalesce(s.due, CASE WHEN last.outcome = 'retried' THEN last.ended_at ELSE last.due END, j.scheduled_at, j.created_at),
        coalesce(l.claimed_at, h.started_at), array_remove(array_append(coalesce(h.names, '{}'), l.name), NULL),
        CASE WHEN last.final THEN last.ended_at WHEN s.job_id IS NULL AND p.job_id IS NULL AND l.id IS NULL THEN v.at END,
        h.errors, j.unique_key, coalesce(j.unique_states, 0::smallint)
    FROM pelton.job j
    LEFT JOIN last ON last.job_id = j.id
    LEFT JOIN history h ON h.job_id = j.id
    LEFT JOIN pelton.job_change c ON c.job_id = j.id
    LEFT JOIN pelton.job_scheduled s ON s.job_id = j.id
    LEFT JOIN pelton.job_parked p ON p.job_id = j.id
    LEFT JOIN leased l ON l.id = j.id AND l.run = coalesce(last.run, 0) + 1
    LEFT JOIN LATERAL (SELECT max(v.at) AS at FROM pelton.job_void v WHERE v.job_id = j.id AND v.reason = 'cancelled'
        AND v.run BETWEEN coalesce(last.run, 0) AND coalesce(last.run, 0) + 1) v ON NOT coalesce(last.final, false)
    WHERE j.id = ANY ((SELECT ids)::bigint[]) AND j.id BETWEEN low AND high
    ORDER BY j.id;
END $$;
COMMENT ON FUNCTION pelton.job_rows(bigint[]) IS
    'Jobs with their state, changes, and what their runs left, as the Go client''s JobGet returns them.';

-- json_contains tells whether a JSON document contains a fragment, as jsonb's @> does. A document that jsonb cannot hold (NUL in
-- a string, a number beyond numeric) contains nothing.
CREATE FUNCTION pelton.json_contains(doc json, fragment jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN doc::jsonb @> fragment;
EXCEPTION WHEN untranslatable_character OR numeric_value_out_of_range THEN
    RETURN false;
END $$;

-- bury copies jobs whole into the dead letters: called in the transaction that recorded their last run, after it.
CREATE FUNCTION pelton.bury(ids bigint[], why text) RETURNS void LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    low bigint;
    high bigint;
BEGIN
    SELECT min(i), max(i) INTO low, high FROM unnest(ids) i;
    INSERT INTO pelton.job_dead (job_id, died_at, created_at, scheduled_at, priority, max_attempts, attempt, reason, kind, queue,
        error, args, metadata, tags, attempts)
    SELECT r.id, coalesce(r.finalized_at, clock_timestamp()), r.created_at, r.scheduled_at, r.priority, r.max_attempts,
        r.attempts, why, r.kind, r.queue,
        (SELECT a.error FROM pelton.job_attempt a WHERE a.job_id BETWEEN low AND high AND a.job_id = r.id ORDER BY a.run DESC LIMIT 1),
        r.args, r.metadata, r.tags,
        (SELECT coalesce(jsonb_agg(jsonb_build_object('run', a.run, 'attempt', a.attempt, 'outcome', a.outcome,
            'started_at', a.started_at, 'ended_at', a.ended_at, 'executor', x.name, 'error', a.error, 'trace', a.trace)
            ORDER BY a.run), '[]')
        FROM pelton.job_attempt a LEFT JOIN pelton.executor x ON x.id = a.executor
        WHERE a.job_id BETWEEN low AND high AND a.job_id = r.id)
    FROM pelton.job_rows(ids) r ORDER BY r.id
    ON CONFLICT (job_id) DO NOTHING;
END $$;

-- redrive makes a new job of a dead letter, with metadata redriven_from, and removes the letter. Its old partition may be gone.
-- Returns the new job's id. It holds no unique key. Fails with PL003 if the job worked for a node of a flow.
CREATE FUNCTION pelton.redrive(dead bigint, actor text DEFAULT NULL) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    letter pelton.job_dead;
    fresh bigint;
BEGIN
    DELETE FROM pelton.job_dead d WHERE d.job_id = dead RETURNING * INTO letter;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'dead letter % not found', dead USING ERRCODE = 'PL001';
    END IF;
    PERFORM pelton.refuse_node('dead letter ' || dead, letter.metadata);
    SELECT i.id INTO fresh FROM pelton.insert_jobs(ARRAY[letter.kind], ARRAY[letter.args::text], ARRAY[letter.queue],
        ARRAY[letter.priority], ARRAY[letter.max_attempts], ARRAY[NULL::timestamptz], ARRAY[false],
        ARRAY[((coalesce(letter.metadata, '{}') - 'output') || jsonb_build_object('redriven_from', dead))::text],
        ARRAY[array_to_string(letter.tags, ',')], NULL, NULL, true) i;
    PERFORM pelton.record_audit(actor, 'dead.redrive', dead::text, jsonb_build_object('kind', letter.kind, 'queue', letter.queue,
        'reason', letter.reason, 'attempt', letter.attempt), jsonb_build_object('job', fresh));
    RETURN fresh;
END $$;

-- discard removes a dead letter for good. Returns false if there is none.
CREATE FUNCTION pelton.discard(dead bigint, actor text DEFAULT NULL) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    letter pelton.job_dead;
BEGIN
    DELETE FROM pelton.job_dead d WHERE d.job_id = dead RETURNING * INTO letter;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM pelton.record_audit(actor, 'dead.discard', dead::text, jsonb_build_object('kind', letter.kind, 'queue', letter.queue,
        'reason', letter.reason, 'attempt', letter.attempt, 'error', left(letter.error, 1000)), NULL);
    RETURN true;
END $$;
