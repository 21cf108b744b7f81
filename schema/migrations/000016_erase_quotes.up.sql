-- An erase reaches what quotes the job: alerts, and the notices of alerts and flows that were sent or are to be sent.

-- without_quotes is what an alert says, without what it tells of these jobs: "1 new dead letter (job 17, mail: ...)".
CREATE FUNCTION pelton.without_quotes(said text, jobs bigint[]) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    one bigint;
BEGIN
    FOREACH one IN ARRAY jobs LOOP
        IF strpos(said, '(job ' || one || ', ') > 0 AND strpos(said, '(job ' || one || ', erased)') = 0 THEN
            said := split_part(said, '(job ' || one || ', ', 1) || '(job ' || one || ', erased)';
        END IF;
    END LOOP;
    RETURN said;
END $$;

-- blank_notice sets the args of a job that has sent or will send a notice, in all places.
CREATE FUNCTION pelton.blank_notice(notice bigint, blank json) RETURNS void LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    PERFORM pelton.lock_job_partition(notice);
    UPDATE pelton.job j SET args = blank WHERE j.id = notice;
    UPDATE pelton.job_change c SET args = blank WHERE c.job_id = notice AND c.args IS NOT NULL;
    UPDATE pelton.job_dead d SET args = blank WHERE d.job_id = notice;
END $$;

-- erase_run_notices blanks why, in the notices of a run. They were enqueued as it went on, so it reads the jobs of that time.
CREATE FUNCTION pelton.erase_run_notices(run bigint, since timestamptz, until timestamptz) RETURNS bigint LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    told record;
    n bigint := 0;
BEGIN
    FOR told IN
        SELECT j.id, j.args FROM pelton.job j
        WHERE j.id BETWEEN pelton.id_at(since - interval '1 minute') AND pelton.id_at(until + interval '1 hour') AND j.kind = 'flow_notify'
        UNION ALL
        SELECT d.job_id, d.args FROM pelton.job_dead d WHERE d.kind = 'flow_notify'
    LOOP
        IF told.args ->> 'run' = run::text AND told.args ->> 'detail' <> 'erased' THEN
            PERFORM pelton.blank_notice(told.id, (told.args::jsonb || '{"detail": "erased"}')::json);
            n := n + 1;
        END IF;
    END LOOP;
    RETURN n;
END $$;

-- erase_alerts takes what alerts tell of jobs out of them and out of their notices. A letter is told for 24 hours at most, its rule may wait for as long
-- before and after, and as long again until it is told: so notices of 4 days are read.
CREATE FUNCTION pelton.erase_alerts(jobs bigint[], since timestamptz, until timestamptz) RETURNS bigint LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    told record;
    blank jsonb;
    n bigint := 0;
BEGIN
    PERFORM FROM pelton.alert_turn t FOR UPDATE; -- who evaluates may have read the letter, and has written now what it says
    UPDATE pelton.alert_state a SET text = pelton.without_quotes(a.text, jobs) WHERE a.text <> pelton.without_quotes(a.text, jobs);
    GET DIAGNOSTICS n = ROW_COUNT;
    FOR told IN
        SELECT j.id, j.args FROM pelton.job j
        WHERE j.id BETWEEN pelton.id_at(since - interval '1 minute') AND pelton.id_at(until + interval '4 days') AND j.kind = 'pelton_alert'
        UNION ALL
        SELECT d.job_id, d.args FROM pelton.job_dead d WHERE d.kind = 'pelton_alert'
    LOOP
        CONTINUE WHEN jsonb_typeof(told.args::jsonb -> 'subjects') IS DISTINCT FROM 'array';
        SELECT told.args::jsonb || jsonb_build_object('summary', pelton.without_quotes(told.args ->> 'summary', jobs), 'subjects',
            coalesce(jsonb_agg(s.about || jsonb_build_object('text', pelton.without_quotes(s.about ->> 'text', jobs)) ORDER BY s.n), '[]'))
        INTO blank FROM jsonb_array_elements(told.args::jsonb -> 'subjects') WITH ORDINALITY AS s(about, n);
        IF blank <> told.args::jsonb THEN
            PERFORM pelton.blank_notice(told.id, blank::json);
            n := n + 1;
        END IF;
    END LOOP;
    RETURN n;
END $$;

-- marked_run and marked_node are the run and the node that a job works for by its metadata; NULL: none, or a mark that no engine has made.
CREATE FUNCTION pelton.marked_run(metadata jsonb) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN metadata #>> '{pelton:flow,run}' ~ '^[0-9]{1,18}$' THEN (metadata #>> '{pelton:flow,run}')::bigint END
$$;
CREATE FUNCTION pelton.marked_node(metadata jsonb) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN metadata #>> '{pelton:flow,node}' ~ '^[0-9]{1,9}$' THEN (metadata #>> '{pelton:flow,node}')::integer END
$$;

-- erase_job: as it was, and blanks also what quotes the job, and the reasons of all nodes of a run whose parameters go.
CREATE OR REPLACE FUNCTION pelton.erase_job(job bigint, actor text DEFAULT NULL) RETURNS jsonb LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    kin bigint[] := '{}';
    todo bigint[] := ARRAY[job];
    one bigint;
    meta jsonb;
    there boolean := false;
    last record;
    node record;
    run_made timestamptz;
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
    notices bigint := 0;
    died timestamptz;
    died_last timestamptz;
    result jsonb;
BEGIN
    -- A node's run is locked before its letters, as by the engine when it starts the node over.
    PERFORM FROM pelton.flow_run r WHERE r.id = (SELECT pelton.marked_run(j.metadata) FROM pelton.job j WHERE j.id = job) FOR UPDATE;
    -- The letters go first: whoever is just redriving one has committed then, and is found.
    WHILE todo <> '{}' LOOP
        FOREACH one IN ARRAY todo LOOP
            PERFORM pg_advisory_xact_lock(pelton.erase_lock(one));
            PERFORM pelton.lock_job_partition(one);
            WITH gone AS (DELETE FROM pelton.job_dead d WHERE d.job_id = one RETURNING d.died_at)
            SELECT letters + count(*), least(died, min(g.died_at)), greatest(died_last, max(g.died_at)) INTO letters, died, died_last FROM gone g;
            SELECT least(died, min(a.ended_at)), greatest(died_last, max(a.ended_at)) INTO died, died_last
            FROM pelton.job_attempt a WHERE a.job_id = one AND a.outcome = 'discarded';
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
        CONTINUE WHEN pelton.marked_run(meta) IS NULL;
        SELECT r.created_at, r.ended_at INTO run_made, run_ended FROM pelton.flow_run r WHERE r.id = pelton.marked_run(meta) FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
        IF run_ended IS NULL THEN
            RAISE EXCEPTION 'job % works for node % of run %, which has not ended: kill the run, or wait for its end, and erase the job then', one,
                coalesce(meta #>> '{pelton:flow,path}', meta #>> '{pelton:flow,node}'), meta #>> '{pelton:flow,run}' USING ERRCODE = 'PL004';
        END IF;
        SELECT f.run_id, f.no, f.path, f.template, f.reason INTO node FROM pelton.flow_node f
        WHERE f.run_id = pelton.marked_run(meta) AND f.no = pelton.marked_node(meta) AND (f.job_id = one OR one = ANY (f.jobs));
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
        -- Reasons quote parameters and outputs, as that of a condition that was false does.
        UPDATE pelton.flow_node f SET reason = 'erased' WHERE f.run_id = node.run_id AND f.reason <> 'erased';
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
            reason = CASE WHEN r.reason IS NOT NULL THEN 'erased' END
        WHERE r.id = node.run_id AND (r.erased_at IS NULL OR r.reason <> 'erased');
        GET DIAGNOSTICS n = ROW_COUNT;
        runs := runs + n;
        UPDATE pelton.audit a SET after = a.after #- '{options,params}' #- '{options,node_params}'
        WHERE a.target = 'run ' || node.run_id AND a.action = 'flow.run' AND a.after -> 'options' ?| ARRAY['params', 'node_params'];
        notices := notices + pelton.erase_run_notices(node.run_id, run_made, run_ended);
    END LOOP;
    IF died IS NOT NULL THEN
        notices := notices + pelton.erase_alerts(kin, died, died_last);
    END IF;

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
        'answers', answers, 'notices', notices);
    done := done + jobs + attempts + chunks + letters + nodes + runs + answers + notices;
    IF done > 0 THEN
        PERFORM pelton.record_audit(actor, 'job.erase', job::text, NULL, result);
    END IF;
    RETURN result || jsonb_build_object('changed', done > 0);
END $$;
