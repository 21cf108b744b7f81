-- Pelton's own keys of metadata are not for others to give: a job with the mark of a flow's node would be taken for one.

-- own_key is a key of metadata that is Pelton's own; NULL: it has none.
CREATE FUNCTION pelton.own_key(metadata jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT k FROM jsonb_object_keys(CASE WHEN jsonb_typeof(metadata) = 'object' THEN metadata END) AS k WHERE k LIKE 'pelton:%' ORDER BY k LIMIT 1
$$;

-- check_job refuses a job that the Go client would refuse. label stands before the message.
CREATE OR REPLACE FUNCTION pelton.check_job(label text, kind text, args text, queue text, priority integer, run_at timestamptz,
    tags text[], metadata jsonb, max_attempts integer) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    fault text;
    remedy text;
    bad text;
BEGIN
    SELECT t.tag INTO bad FROM unnest(tags) AS t(tag)
        WHERE t.tag IS NULL OR length(t.tag) > 255 OR t.tag !~ '^[A-Za-z0-9_][A-Za-z0-9_-]+[A-Za-z0-9_]$' LIMIT 1;
    IF FOUND THEN
        fault := format('tag %s is not valid', coalesce('"' || left(bad, 300) || '"', 'NULL'));
        remedy := 'A tag is 3 to 255 letters, digits, _ or -, and neither begins nor ends with -.';
    ELSIF coalesce(kind, '') = '' THEN
        fault := 'kind is empty';
        remedy := 'Name the kind of a registered worker, such as ''command''.';
    ELSIF octet_length(kind) > 128 THEN
        fault := format('kind is %s bytes, want 1 to 128', octet_length(kind));
        remedy := 'Put what differs from job to job into args.';
    ELSIF kind ~ '[\u0001-\u001f\u007f]' OR getdatabaseencoding() = 'UTF8' AND kind ~ '[\u0080-\u009f]' THEN
        fault := 'kind has characters that control a terminal, as a line feed';
        remedy := 'Name it by letters, digits and signs.';
    ELSIF length(queue) > 64 OR queue !~ '^[a-z0-9]+([_|-]?[a-z0-9]+)*$' THEN
        fault := format('queue name "%s" is not valid', left(queue, 300));
        remedy := 'A queue name is up to 64 lower-case letters and digits, separated by single _ or -.';
    ELSIF priority NOT BETWEEN 1 AND 4 THEN
        fault := format('priority is %s, want 1 to 4', priority);
        remedy := '1 runs first, 4 last.';
    ELSIF max_attempts NOT BETWEEN 1 AND 32767 THEN
        fault := format('max_attempts is %s, want 1 to 32767', max_attempts);
        remedy := 'The first run counts: 1 means no retry.';
    ELSIF NOT isfinite(run_at) OR extract(year FROM run_at AT TIME ZONE 'UTC') NOT BETWEEN 1 AND 9999 THEN
        fault := format('run_at is %s, out of range', run_at);
        remedy := 'Use a time from year 1 to 9999; pending => true lets a job wait without a time.';
    ELSIF args IS NULL THEN
        fault := 'args are NULL';
        remedy := 'Leave args out for {}, or pass ''null''.';
    ELSIF octet_length(args) > 1048576 THEN
        fault := format('args are %s bytes, over the limit of 1048576', octet_length(args));
        remedy := 'Store the data elsewhere and pass where it is.';
    ELSIF metadata IS NOT NULL AND jsonb_typeof(metadata) <> 'object' THEN
        fault := format('metadata is a JSON %s, want an object', jsonb_typeof(metadata));
        remedy := 'For example {"trace": "4711"}.';
    ELSIF octet_length(metadata::text) > 1048576 THEN
        fault := format('metadata is %s bytes, over the limit of 1048576', octet_length(metadata::text));
        remedy := 'Store the data elsewhere and keep where it is.';
    ELSIF pelton.own_key(metadata) IS NOT NULL THEN
        fault := format('metadata key "%s" is Pelton''s own', pelton.own_key(metadata));
        remedy := 'Keys that begin with pelton: are those by which Pelton''s parts tell each other things: name yours otherwise.';
    ELSE
        fault := 'args are not JSON that Postgres can keep: ' || pelton.json_fault(args);
        remedy := 'Build args with jsonb_build_object or to_jsonb; \u0000 cannot be stored.';
    END IF;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = label || fault, HINT = remedy;
    END IF;
END $$;

-- change sets what is not NULL: queue and priority (the job moves to another line), max attempts, args; metadata is merged into
-- the job's. A run that has been taken goes on as it is; what was changed counts from the next run on. No ticket is written
-- here: whoever takes the old one ends it as 'moved' and puts the job into its new line. Returns the run that the change
-- counts for: if that has passed when the calling transaction commits, calling once more moves the job again; JobUpdate does.
CREATE OR REPLACE FUNCTION pelton.change(job bigint, new_queue text DEFAULT NULL, new_priority integer DEFAULT NULL,
    new_max_attempts integer DEFAULT NULL, new_args json DEFAULT NULL, new_metadata jsonb DEFAULT NULL,
    actor text DEFAULT NULL)
RETURNS integer LANGUAGE plpgsql VOLATILE SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    held boolean;
    last record;
    old record;
    merged integer; -- bytes of all that was changed of the metadata
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
    IF pelton.own_key(new_metadata) IS NOT NULL THEN
        RAISE EXCEPTION 'metadata key "%" is Pelton''s own: name yours otherwise', pelton.own_key(new_metadata) USING ERRCODE = '22023';
    END IF;
    IF octet_length(new_args::text) > 1048576 THEN
        RAISE EXCEPTION 'args are % bytes, over the limit of 1048576', octet_length(new_args::text) USING ERRCODE = '22023';
    END IF;
    IF pelton.json_fault(new_args::text) IS NOT NULL THEN
        RAISE EXCEPTION 'args are not JSON that Postgres can keep: %', pelton.json_fault(new_args::text) USING ERRCODE = '22023';
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
        metadata = CASE WHEN excluded.metadata IS NULL THEN c.metadata ELSE coalesce(c.metadata, '{}') || excluded.metadata END
    RETURNING octet_length(c.metadata::text) INTO merged;
    IF new_metadata IS NOT NULL AND merged > 2 * 1048576 THEN
        RAISE EXCEPTION 'what was changed of the metadata is % bytes together, over the limit of 2097152', merged USING ERRCODE = '22023';
    END IF;

    IF held IS NULL AND (new_queue <> old.queue OR new_priority <> old.priority)
        AND (last.outcome IS NULL OR last.outcome NOT IN ('completed', 'cancelled', 'discarded'))
        AND NOT pelton.is_leased(job, last.run + 1) THEN
        INSERT INTO pelton.job_void (job_id, run, reason) VALUES (job, last.run + 1, 'moved') ON CONFLICT DO NOTHING;
    END IF;
    -- A worker that stores its output while it runs changes nothing that was asked: no audit.
    IF coalesce(new_queue, new_priority::text, new_max_attempts::text, new_args::text) IS NOT NULL
        OR new_metadata - 'output' <> '{}' OR actor IS NOT NULL AND new_metadata IS NOT NULL THEN
        PERFORM pelton.record_audit(actor, 'job.update', job::text, jsonb_strip_nulls(to_jsonb(old)), jsonb_strip_nulls(jsonb_build_object(
            'queue', new_queue, 'priority', new_priority, 'max_attempts', new_max_attempts,
            'args_bytes', length(new_args::text), 'args_changed', others, 'metadata_keys', (SELECT jsonb_agg(k) FROM jsonb_object_keys(new_metadata) k))));
    END IF;
    RETURN last.run + 1;
END $$;
