-- erase_run_notices blanks why, in the notices of a run. They were enqueued as it went on, so it reads the jobs of that time.
CREATE OR REPLACE FUNCTION pelton.erase_run_notices(run bigint, since timestamptz, until timestamptz) RETURNS bigint LANGUAGE plpgsql VOLATILE
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
CREATE OR REPLACE FUNCTION pelton.erase_alerts(jobs bigint[], since timestamptz, until timestamptz) RETURNS bigint LANGUAGE plpgsql VOLATILE
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

DROP FUNCTION pelton.is_notice(jsonb);
DROP FUNCTION pelton.readable(json);
