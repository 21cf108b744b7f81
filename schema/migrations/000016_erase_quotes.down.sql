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

DROP FUNCTION pelton.marked_run, pelton.marked_node, pelton.erase_alerts, pelton.erase_run_notices, pelton.blank_notice, pelton.without_quotes;
