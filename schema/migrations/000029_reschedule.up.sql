-- A job that waits for its time is given another one.

ALTER TABLE pelton.job_change ADD COLUMN due timestamptz, ADD COLUMN due_run integer;
COMMENT ON COLUMN pelton.job_change.due IS 'The time that somebody gave run due_run; NULL: none.';
COMMENT ON COLUMN pelton.job_change.due_run IS 'The run that due is of: others have the times that they were asked for.';

-- reschedule gives a job that waits for its time, scheduled or retryable, another one, that of now for one gone by. The run stays what it is. Returns the
-- state, which stays too. Fails with PL006 if the job does not wait for a time (DETAIL: its state), and with PL003 if it works for a node of a flow.
--
-- A job in the line is refused: its ticket may be one of a hundred jobs, and may be being taken in this moment.
CREATE FUNCTION pelton.reschedule(job bigint, run_at timestamptz, actor text DEFAULT NULL) RETURNS text LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    at timestamptz := clock_timestamp();
    new_due timestamptz := greatest(run_at, at);
    old record;
    was text;
    mark jsonb;
    node text;
BEGIN
    IF run_at IS NULL OR NOT isfinite(run_at) OR extract(year FROM run_at AT TIME ZONE 'UTC') NOT BETWEEN 1 AND 9999 THEN
        RAISE EXCEPTION 'run_at is %, want a time from year 1 to 9999', coalesce(run_at::text, 'NULL') USING ERRCODE = '22023';
    END IF;
    LOOP
        -- Waits for a duty that is just moving the job on, and for whoever else changes or cancels it.
        SELECT s.due, s.run, CASE WHEN s.retry THEN 'retryable' ELSE 'scheduled' END AS state INTO old
        FROM pelton.job_scheduled s WHERE s.job_id = job FOR UPDATE;
        was := CASE WHEN NOT FOUND THEN (SELECT r.state FROM pelton.job_rows(ARRAY[job]) r)
            WHEN pelton.voided(job, old.run) = 'cancelled' THEN 'cancelled' END; -- its cancel came as its run failed, and is met soon
        EXIT WHEN was IS NULL;
        CONTINUE WHEN was IN ('scheduled', 'retryable'); -- it was put off between the two looks
        RAISE EXCEPTION 'job % is %: %', job, was, CASE was
            WHEN 'available' THEN 'its time has come, and it may start at any moment; to put it off, cancel it and enqueue one like it'
            WHEN 'running' THEN 'its time has come; to have it run later, cancel it and enqueue one like it'
            WHEN 'pending' THEN 'it waits to be released, not for a time; retry releases it'
            ELSE 'it has ended; retry it, or enqueue one like it' END USING ERRCODE = 'PL006', DETAIL = was;
    END LOOP;
    SELECT j.metadata -> 'pelton:flow' INTO mark FROM pelton.job j WHERE j.id = job;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'job % not found', job USING ERRCODE = 'PL001';
    END IF;
    IF mark ->> 'run' IS NOT NULL THEN
        node := coalesce(mark ->> 'path', mark ->> 'node');
        RAISE EXCEPTION 'job % works for node % of run %, which decides when it runs; retry of the job hurries its next attempt', job, node, mark ->> 'run'
            USING ERRCODE = 'PL003', DETAIL = jsonb_build_object('run', mark -> 'run', 'node', node)::text;
    END IF;
    IF old.due <> run_at AND NOT (old.due <= at AND run_at <= at) THEN
        -- wake is taken here, after the table's lock, so that no row falls below a floor. An update, so that whoever waits for the row goes on to the new one.
        UPDATE pelton.job_scheduled s SET due = new_due, wake = greatest(new_due, clock_timestamp()) WHERE s.job_id = job;
        -- changed_at stays: it says which output is the newer one.
        INSERT INTO pelton.job_change AS c (job_id, due, due_run) VALUES (job, new_due, old.run)
        ON CONFLICT (job_id) DO UPDATE SET due = excluded.due, due_run = excluded.due_run;
        IF new_due <= clock_timestamp() + interval '7.5 seconds' THEN -- movers look at least so often
            PERFORM pelton.hint('due:');
        END IF;
        PERFORM pelton.record_audit(actor, 'job.reschedule', job::text, jsonb_build_object('state', old.state, 'due', old.due),
            jsonb_build_object('state', old.state, 'due', new_due));
    END IF;
    RETURN old.state;
END $$;
COMMENT ON FUNCTION pelton.reschedule(bigint, timestamptz, text) IS 'Gives a job that waits for its time another one; a time gone by means at once.';

-- As before, but that the time of a run may be one that it was given later.
CREATE OR REPLACE VIEW pelton.running AS
    SELECT s.job_id, j.kind, coalesce(c.queue, j.queue) AS queue, coalesce(c.priority, j.priority) AS priority, s.run, s.attempt,
        greatest(coalesce(p.ended_at, j.created_at),
            CASE WHEN c.due_run = s.run THEN c.due WHEN p.job_id IS NULL THEN j.scheduled_at ELSE p.due END) AS ready_at,
        s.since AS started_at,
        s.since - greatest(coalesce(p.ended_at, j.created_at),
            CASE WHEN c.due_run = s.run THEN c.due WHEN p.job_id IS NULL THEN j.scheduled_at ELSE p.due END)
            AS waited,
        clock_timestamp() - s.since AS took, s.executor, x.name AS executor_name, x.host
    FROM pelton.job_state s
    JOIN LATERAL (SELECT j.kind, j.queue, j.priority, j.created_at, j.scheduled_at FROM pelton.job j
        WHERE j.id = s.job_id OFFSET 0) j ON true
    LEFT JOIN pelton.job_change c ON c.job_id = s.job_id
    LEFT JOIN LATERAL (SELECT p.job_id, p.ended_at, p.due FROM pelton.job_attempt p
        WHERE p.job_id = s.job_id AND p.run = s.run - 1 OFFSET 0) p ON true
    LEFT JOIN pelton.executor x ON x.id = s.executor
    WHERE s.state = 'running';

CREATE OR REPLACE VIEW pelton.run_report AS
    SELECT a.job_id, a.run, a.attempt, j.kind, coalesce(c.queue, j.queue) AS queue,
        coalesce(c.priority, j.priority) AS priority, a.outcome::text AS outcome,
        greatest(coalesce(p.ended_at, j.created_at),
            CASE WHEN c.due_run = a.run THEN c.due WHEN p.job_id IS NULL THEN j.scheduled_at ELSE p.due END) AS ready_at,
        a.started_at, a.ended_at,
        a.started_at - greatest(coalesce(p.ended_at, j.created_at),
            CASE WHEN c.due_run = a.run THEN c.due WHEN p.job_id IS NULL THEN j.scheduled_at ELSE p.due END)
            AS waited,
        a.ended_at - a.started_at AS took, a.due AS next_due, a.error, a.trace, a.output, a.metadata, a.executor,
        x.name AS executor_name, x.host
    FROM pelton.job_attempt a
    JOIN pelton.job j ON j.id = a.job_id
    LEFT JOIN pelton.job_change c ON c.job_id = a.job_id
    LEFT JOIN pelton.job_attempt p ON p.job_id = a.job_id AND p.run = a.run - 1
    LEFT JOIN pelton.executor x ON x.id = a.executor
UNION ALL
    SELECT r.job_id, r.run, r.attempt, r.kind, r.queue, r.priority, 'running', r.ready_at, r.started_at, NULL, r.waited, r.took,
        NULL, NULL, NULL, NULL, NULL, r.executor, r.executor_name, r.host
    FROM pelton.running r;

CREATE OR REPLACE FUNCTION pelton.job_rows(ids bigint[])
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
    WITH leased AS MATERIALIZED (
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
        CASE WHEN h.added OR c.metadata IS NOT NULL THEN
            coalesce((SELECT jsonb_object_agg(f.key, f.value ORDER BY m.at, m.run)
                FROM (SELECT j.metadata, '-infinity'::timestamptz AS at, 0 AS run
                    UNION ALL SELECT a.metadata, a.ended_at, a.run FROM pelton.job_attempt a
                    WHERE a.job_id = j.id AND a.job_id BETWEEN low AND high AND a.metadata IS NOT NULL
                    UNION ALL SELECT c.metadata, c.changed_at, 2147483647) m, jsonb_each(m.metadata) f), '{}')
            ELSE coalesce(j.metadata, '{}') END,
        CASE WHEN h.put_out THEN
            (SELECT a.output FROM pelton.job_attempt a WHERE a.job_id = j.id AND a.job_id BETWEEN low AND high AND a.output IS NOT NULL
                AND (c.metadata IS NULL OR NOT c.metadata ? 'output' OR a.ended_at > c.changed_at) ORDER BY a.run DESC LIMIT 1) END,
        coalesce(j.tags, '{}'), j.created_at,
        coalesce(s.due, CASE WHEN c.due_run = coalesce(last.run, 0) + CASE WHEN last.final THEN 0 ELSE 1 END THEN c.due END,
            CASE WHEN last.outcome = 'retried' THEN last.ended_at ELSE last.due END, j.scheduled_at, j.created_at),
        coalesce(l.claimed_at, h.started_at), array_remove(array_append(coalesce(h.names, '{}'), l.name), NULL),
        CASE WHEN last.final THEN last.ended_at WHEN s.job_id IS NULL AND p.job_id IS NULL AND l.id IS NULL THEN v.at END,
        h.errors, j.unique_key, coalesce(j.unique_states, 0::smallint)
    FROM pelton.job j
    LEFT JOIN LATERAL (
        SELECT a.run, a.outcome, a.attempt, a.ended_at, a.due, a.outcome IN ('completed', 'cancelled', 'discarded') AS final
        FROM pelton.job_attempt a WHERE a.job_id = j.id AND a.job_id BETWEEN low AND high ORDER BY a.run DESC LIMIT 1
    ) last ON true
    LEFT JOIN LATERAL (
        SELECT max(a.started_at) AS started_at, bool_or(a.metadata IS NOT NULL) AS added, bool_or(a.output IS NOT NULL) AS put_out,
            array_agg(coalesce(x.name, 'executor ' || a.executor) ORDER BY a.run)
                FILTER (WHERE a.started_at IS NOT NULL AND a.executor IS NOT NULL) AS names,
            jsonb_agg(jsonb_build_object('at', a.ended_at, 'attempt', a.attempt, 'error', a.error, 'trace', coalesce(a.trace, ''))
                ORDER BY a.run) FILTER (WHERE a.error IS NOT NULL) AS errors
        FROM pelton.job_attempt a LEFT JOIN pelton.executor x ON x.id = a.executor
        WHERE a.job_id = j.id AND a.job_id BETWEEN low AND high
    ) h ON true
    LEFT JOIN pelton.job_change c ON c.job_id = j.id
    LEFT JOIN pelton.job_scheduled s ON s.job_id = j.id
    LEFT JOIN pelton.job_parked p ON p.job_id = j.id
    LEFT JOIN leased l ON l.id = j.id AND l.run = coalesce(last.run, 0) + 1
    LEFT JOIN LATERAL (SELECT max(v.at) AS at FROM pelton.job_void v WHERE v.job_id = j.id AND v.reason = 'cancelled'
        AND v.run BETWEEN coalesce(last.run, 0) AND coalesce(last.run, 0) + 1) v ON NOT coalesce(last.final, false)
    WHERE j.id = ANY ((SELECT ids)::bigint[]) AND j.id BETWEEN low AND high
    ORDER BY j.id;
END $$;
