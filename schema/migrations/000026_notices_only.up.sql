-- An erase leaves jobs of the kinds of notices alone that are none: args of another form, or that jsonb cannot hold, which kept jobs from being erased.

-- readable is a document, if jsonb can hold it; NULL: it cannot.
CREATE FUNCTION pelton.readable(document json) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN document::jsonb;
EXCEPTION WHEN untranslatable_character OR numeric_value_out_of_range OR program_limit_exceeded THEN
    RETURN NULL;
END $$;

-- is_notice tells whether args are those of a notice of alerts: a summary, and subjects with a text each.
CREATE FUNCTION pelton.is_notice(args jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF jsonb_typeof(args -> 'summary') IS DISTINCT FROM 'string' OR jsonb_typeof(args -> 'subjects') IS DISTINCT FROM 'array' THEN
        RETURN false;
    END IF;
    RETURN NOT EXISTS (SELECT FROM jsonb_array_elements(args -> 'subjects') s WHERE jsonb_typeof(s -> 'text') IS DISTINCT FROM 'string');
END $$;

-- erase_run_notices blanks why, in the notices of a run. They were enqueued as it went on, so it reads the jobs of that time.
CREATE OR REPLACE FUNCTION pelton.erase_run_notices(run bigint, since timestamptz, until timestamptz) RETURNS bigint LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    told record;
    doc jsonb;
    n bigint := 0;
BEGIN
    FOR told IN
        SELECT j.id, j.args FROM pelton.job j
        WHERE j.id BETWEEN pelton.id_at(since - interval '1 minute') AND pelton.id_at(until + interval '1 hour') AND j.kind = 'flow_notify'
        UNION ALL
        SELECT d.job_id, d.args FROM pelton.job_dead d WHERE d.kind = 'flow_notify'
    LOOP
        doc := pelton.readable(told.args);
        IF doc ->> 'run' = run::text AND doc ->> 'detail' <> 'erased' THEN
            PERFORM pelton.blank_notice(told.id, (doc || '{"detail": "erased"}')::json);
            n := n + 1;
        END IF;
    END LOOP;
    RETURN n;
END $$;

-- erase_alerts takes what alerts tell of jobs out of them and out of their notices. A letter is told for 24 hours at most, its rule may wait for as long
-- before and after, and as long again until it is told: so notices of 4 days are read. Other jobs of that kind stay as they are.
CREATE OR REPLACE FUNCTION pelton.erase_alerts(jobs bigint[], since timestamptz, until timestamptz) RETURNS bigint LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    told record;
    doc jsonb;
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
        doc := pelton.readable(told.args);
        CONTINUE WHEN NOT pelton.is_notice(doc);
        SELECT doc || jsonb_build_object('summary', pelton.without_quotes(doc ->> 'summary', jobs), 'subjects',
            coalesce(jsonb_agg(s.about || jsonb_build_object('text', pelton.without_quotes(s.about ->> 'text', jobs)) ORDER BY s.n), '[]'))
        INTO blank FROM jsonb_array_elements(doc -> 'subjects') WITH ORDINALITY AS s(about, n);
        IF blank <> doc THEN
            PERFORM pelton.blank_notice(told.id, blank::json);
            n := n + 1;
        END IF;
    END LOOP;
    RETURN n;
END $$;
