-- Enqueueing from SQL: enqueue and enqueue_many for people, triggers and other languages; insert_json for clients that can
-- pass one text parameter but no arrays (Go's database/sql). All end in insert_jobs.

-- hint_due tells movers, when the transaction commits, that one of the jobs inserted is due before their next look may come: they
-- look at least every 7.5 seconds. A session tells them at most every 200 ms: a hint makes them look often for a while. Nothing
-- is sent while the notification queue is half full.
CREATE FUNCTION pelton.hint_due(due timestamptz[], pending boolean[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    at timestamptz := clock_timestamp();
    ms bigint := floor(extract(epoch FROM at) * 1000);
    last bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM unnest(due, pending) AS u(due, pending)
        WHERE u.due > at AND u.due <= at + interval '7.5 seconds' AND NOT u.pending) THEN
        RETURN;
    END IF;
    last := nullif(current_setting('peltonq.told_due', true), '')::bigint; -- gone if that transaction was rolled back
    IF (last IS NULL OR abs(ms - last) >= 200) AND pg_notification_queue_usage() < 0.5 THEN
        PERFORM set_config('peltonq.told_due', ms::text, false);
        PERFORM pg_notify('pelton_wake', 'due:');
    END IF;
END $$;

-- insert_json unpacks a JSON array of jobs into insert_jobs. It checks nothing: its caller has. Each job is
-- {"kind", "args": text or JSON, "queue", "priority", "max_attempts", "due", "pending", "metadata": text or object,
-- "tags": [text], "unique_key": hex, "unique_states": bits}; what is missing or null has enqueue's default. Returns one row per
-- job in order, as insert_jobs does; none for an empty array.
CREATE FUNCTION pelton.insert_json(jobs json, hint boolean DEFAULT true)
RETURNS TABLE (id bigint, created_at timestamptz, state text, skipped boolean) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
BEGIN
    IF json_array_length(jobs) = 0 THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT i.id, i.created_at, i.state, i.skipped
    FROM (
        SELECT array_agg(kind ORDER BY n) AS kinds, array_agg(coalesce(args, '{}') ORDER BY n) AS args,
            array_agg(coalesce(queue, 'default') ORDER BY n) AS queues,
            array_agg(coalesce(priority, 1::smallint) ORDER BY n) AS priorities,
            array_agg(coalesce(max_attempts, 25::smallint) ORDER BY n) AS max_attempts, array_agg(due ORDER BY n) AS due,
            array_agg(coalesce(pending, false) ORDER BY n) AS pending, array_agg(nullif(metadata, '') ORDER BY n) AS metadata,
            array_agg(array_to_string(nullif(tags, '{}'), ',') ORDER BY n) AS tags,
            CASE WHEN count(nullif(unique_key, '')) > 0 THEN array_agg(decode(nullif(unique_key, ''), 'hex') ORDER BY n) END
                AS unique_keys,
            array_agg(unique_states ORDER BY n) AS unique_states
        FROM ROWS FROM (json_to_recordset(jobs) AS (kind text, args text, queue text, priority smallint,
            max_attempts smallint, due timestamptz, pending boolean, metadata text, tags text[], unique_key text,
            unique_states smallint)) WITH ORDINALITY AS u(kind, args, queue, priority, max_attempts, due, pending, metadata,
            tags, unique_key, unique_states, n)
    ) a, pelton.insert_jobs(a.kinds, a.args, a.queues, a.priorities, a.max_attempts, a.due, a.pending, a.metadata, a.tags,
        a.unique_keys, a.unique_states, hint) i;
    IF hint THEN
        PERFORM pelton.hint_due(array_agg(u.due), array_agg(coalesce(u.pending, false)))
        FROM json_to_recordset(jobs) AS u(due timestamptz, pending boolean);
    END IF;
END $$;

-- json_fault tells why a text is not JSON that Postgres can keep and read, or NULL. \u0000, half surrogate pairs and numbers
-- beyond numeric are valid JSON to others, but could be stored and never cast to jsonb.
CREATE FUNCTION pelton.json_fault(value text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    more text;
BEGIN
    PERFORM value::jsonb;
    RETURN NULL;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    GET STACKED DIAGNOSTICS more = PG_EXCEPTION_DETAIL;
    RETURN concat_ws(': ', sqlerrm, nullif(more, ''));
END $$;

-- check_job refuses a job that the Go client would refuse. label stands before the message.
CREATE FUNCTION pelton.check_job(label text, kind text, args text, queue text, priority integer, run_at timestamptz,
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
    ELSE
        fault := 'args are not JSON that Postgres can keep: ' || pelton.json_fault(args);
        remedy := 'Build args with jsonb_build_object or to_jsonb; \u0000 cannot be stored.';
    END IF;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = label || fault, HINT = remedy;
    END IF;
END $$;

-- unique_args is the part of args that counts for a unique key, as Go and River write it: the named top-level fields that are
-- there, or all for NULL, in byte order of their names, the first of equal names, values as encoding/json writes them but for
-- numbers, which stay as written.
CREATE FUNCTION pelton.unique_args(label text, args text, fields text[]) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    compact text := regexp_replace(args, '("(?:[^"\\]|\\.)*")|[ \t\n\r]+', '\1', 'g');
    picked text;
BEGIN
    IF compact = '[]' AND fields IS NULL THEN
        RETURN '{}';
    ELSIF json_typeof(compact::json) <> 'object' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('%sargs of a job unique by its args are a JSON %s, want an object', label,
                json_typeof(compact::json)),
            HINT = 'Pass args as an object, or leave unique_by_args out.';
    END IF;
    SELECT string_agg(pelton.go_key(e.key) || ':' || pelton.go_escapes(e.value::text), ',' ORDER BY e.key COLLATE "C")
    INTO picked
    FROM (
        SELECT DISTINCT ON (e.key COLLATE "C") e.key, e.value
        FROM json_each(compact::json) WITH ORDINALITY AS e(key, value, n)
        WHERE fields IS NULL OR e.key = ANY (fields)
        ORDER BY e.key COLLATE "C", e.n
    ) e;
    RETURN CASE WHEN picked IS NOT NULL THEN '{' || picked || '}' WHEN fields IS NULL THEN '{}' ELSE '' END;
END $$;

-- go_escapes escapes what encoding/json escapes inside strings and others leave as it is.
CREATE FUNCTION pelton.go_escapes(encoded text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    encoded := replace(replace(replace(encoded, '<', '\u003c'), '>', '\u003e'), '&', '\u0026');
    IF getdatabaseencoding() = 'UTF8' THEN
        encoded := replace(replace(encoded, chr(8232), '\u2028'), chr(8233), '\u2029');
    END IF;
    RETURN encoded;
END $$;

-- go_key is an object's key between quotes: as it is, or as encoding/json writes it if it holds a character that needs care.
CREATE FUNCTION pelton.go_key(key text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN key ~ '^[ !#-\[\]-\x7f]*$' THEN '"' || key || '"' ELSE pelton.go_escapes(to_json(key)::text) END
$$;

-- unique_key is the key of a unique job, the same as the Go client and River compute: sha256 over
-- "&kind=K&args=A&period=P&queue=Q", each part if asked for. at is the time whose period counts; periods are multiples since
-- the year 1, as Go's time.Truncate has them. NULL if no property makes the job unique.
CREATE FUNCTION pelton.unique_key(label text, kind text, args text, queue text, at timestamptz, by_args boolean,
    fields text[], period interval, by_queue boolean, states text[], exclude_kind boolean) RETURNS bytea
LANGUAGE plpgsql STABLE AS $$
DECLARE
    offset_us constant bigint := 62135596800000000; -- from the year 1 to 1970
    period_us bigint := extract(epoch FROM period) * 1000000;
    at_us bigint := extract(epoch FROM at) * 1000000;
    content text := '';
    fault text;
    remedy text;
BEGIN
    fields := nullif(fields, '{}');
    by_args := coalesce(by_args, false) OR fields IS NOT NULL;
    by_queue := coalesce(by_queue, false);
    exclude_kind := coalesce(exclude_kind, false);
    IF NOT (by_args OR by_queue OR exclude_kind) AND period IS NULL AND states IS NULL THEN
        RETURN NULL;
    ELSIF exclude_kind AND NOT (by_args OR by_queue) AND period IS NULL THEN
        fault := 'unique_exclude_kind needs unique_by_args, unique_by_queue or unique_by_period beside it';
        remedy := 'Without one of them there could be a single job in the whole table.';
    ELSIF extract(month FROM period) <> 0 OR extract(year FROM period) <> 0 THEN
        fault := format('unique_by_period is %s, but months have no fixed length', period);
        remedy := 'Use days, hours, minutes or seconds.';
    ELSIF period_us < 1000000 THEN
        fault := format('unique_by_period is %s, want at least 1 second', period);
        remedy := 'Leave it out for jobs that are unique at all times.';
    END IF;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = label || fault, HINT = remedy;
    END IF;
    IF NOT exclude_kind THEN
        content := '&kind=' || kind;
    END IF;
    IF by_args THEN
        content := content || '&args=' || pelton.unique_args(label, args, fields);
    END IF;
    IF period IS NOT NULL THEN
        at_us := at_us + offset_us;
        at := to_timestamp((at_us - at_us % period_us) / 1000000 - offset_us / 1000000);
        content := content || '&period=' || to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
    END IF;
    IF by_queue THEN
        content := content || '&queue=' || queue;
    END IF;
    RETURN sha256(convert_to(content, 'UTF8'));
END $$;

-- unique_mask is the states in which a job holds its unique key, as bits. NULL or empty: all but cancelled and discarded.
CREATE FUNCTION pelton.unique_mask(label text, states text[]) RETURNS smallint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    known constant text[] := '{available,cancelled,completed,discarded,pending,retryable,running,scheduled}';
    required constant text[] := '{available,pending,running,scheduled}';
    mask smallint;
    bad text;
BEGIN
    IF coalesce(cardinality(states), 0) = 0 THEN
        states := required || '{completed,retryable}';
    END IF;
    SELECT s.state INTO bad FROM unnest(states) AS s(state) WHERE s.state IS NULL OR s.state <> ALL (known) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('%sunique_states has unknown state %s', label, coalesce('"' || left(bad, 100) || '"', 'NULL')),
            HINT = 'States are ' || array_to_string(known, ', ') || '.';
    END IF;
    SELECT string_agg(r.state, ', ' ORDER BY r.state) INTO bad FROM unnest(required) AS r(state) WHERE r.state <> ALL (states);
    IF bad IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('%sunique_states must hold %s too', label, bad),
            HINT = 'Only retryable, completed, cancelled and discarded are a matter of choice.';
    END IF;
    SELECT bit_or(pelton.state_bit(s.state)) INTO mask FROM unnest(states) AS s(state);
    RETURN mask;
END $$;

-- enqueue_result is enqueue that also tells whether a job with the same unique key was found instead (skipped).
CREATE FUNCTION pelton.enqueue_result(
    kind text, args text DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 1,
    run_at timestamptz DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
    max_attempts integer DEFAULT 25, pending boolean DEFAULT false, unique_by_args boolean DEFAULT false,
    unique_fields text[] DEFAULT NULL, unique_by_period interval DEFAULT NULL, unique_by_queue boolean DEFAULT false,
    unique_states text[] DEFAULT NULL, unique_exclude_kind boolean DEFAULT false, notify boolean DEFAULT true)
RETURNS TABLE (id bigint, skipped boolean) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_variable
DECLARE
    key bytea;
    mask smallint;
BEGIN
    queue := coalesce(queue, 'default');
    priority := coalesce(priority, 1);
    max_attempts := coalesce(max_attempts, 25);
    tags := nullif(tags, '{}');
    PERFORM pelton.check_job('', kind, args, queue, priority, run_at, tags, metadata, max_attempts);
    key := pelton.unique_key('', kind, args, queue, coalesce(run_at, clock_timestamp()), unique_by_args, unique_fields,
        unique_by_period, unique_by_queue, unique_states, unique_exclude_kind);
    IF key IS NOT NULL THEN
        mask := pelton.unique_mask('', unique_states);
    END IF;
    RETURN QUERY
    SELECT i.id, i.skipped FROM pelton.insert_jobs(ARRAY[kind], ARRAY[args], ARRAY[queue], ARRAY[priority::smallint],
        ARRAY[max_attempts::smallint], ARRAY[run_at], ARRAY[coalesce(pending, false)],
        ARRAY[nullif(metadata, '{}')::text], ARRAY[array_to_string(tags, ',')], CASE WHEN key IS NOT NULL THEN ARRAY[key] END,
        ARRAY[mask], coalesce(notify, true)) i;
    IF coalesce(notify, true) THEN
        PERFORM pelton.hint_due(ARRAY[run_at], ARRAY[coalesce(pending, false)]);
    END IF;
END $$;

-- enqueue puts one job into the queue, in the caller's transaction, and returns its id: a rollback leaves nothing. Bad input is
-- refused with SQLSTATE 22023. With a unique property it returns the id of the job that holds the key, if there is one.
--
-- args: JSON as text, json or jsonb. run_at: NULL or a time gone by is at once. unique_fields: top-level fields of args that
-- count, instead of all. unique_by_period: one job per period of the time it runs at. unique_states: states in which a job
-- keeps others out. notify => false sends no NOTIFY, for transactions that are prepared for two-phase commit.
CREATE FUNCTION pelton.enqueue(
    kind text, args text DEFAULT '{}', queue text DEFAULT 'default', priority integer DEFAULT 1,
    run_at timestamptz DEFAULT NULL, tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL,
    max_attempts integer DEFAULT 25, pending boolean DEFAULT false, unique_by_args boolean DEFAULT false,
    unique_fields text[] DEFAULT NULL, unique_by_period interval DEFAULT NULL, unique_by_queue boolean DEFAULT false,
    unique_states text[] DEFAULT NULL, unique_exclude_kind boolean DEFAULT false, notify boolean DEFAULT true)
RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT r.id FROM pelton.enqueue_result(
        kind, args, queue, priority, run_at, tags, metadata, max_attempts, pending, unique_by_args, unique_fields,
        unique_by_period, unique_by_queue, unique_states, unique_exclude_kind, notify) r
$$;
CREATE FUNCTION pelton.enqueue(
    kind text, args json, queue text DEFAULT 'default', priority integer DEFAULT 1, run_at timestamptz DEFAULT NULL,
    tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL, max_attempts integer DEFAULT 25,
    pending boolean DEFAULT false, unique_by_args boolean DEFAULT false, unique_fields text[] DEFAULT NULL,
    unique_by_period interval DEFAULT NULL, unique_by_queue boolean DEFAULT false, unique_states text[] DEFAULT NULL,
    unique_exclude_kind boolean DEFAULT false, notify boolean DEFAULT true)
RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT r.id FROM pelton.enqueue_result(
        kind, args::text, queue, priority, run_at, tags, metadata, max_attempts, pending, unique_by_args,
        unique_fields, unique_by_period, unique_by_queue, unique_states, unique_exclude_kind, notify) r
$$;
CREATE FUNCTION pelton.enqueue(
    kind text, args jsonb, queue text DEFAULT 'default', priority integer DEFAULT 1, run_at timestamptz DEFAULT NULL,
    tags text[] DEFAULT NULL, metadata jsonb DEFAULT NULL, max_attempts integer DEFAULT 25,
    pending boolean DEFAULT false, unique_by_args boolean DEFAULT false, unique_fields text[] DEFAULT NULL,
    unique_by_period interval DEFAULT NULL, unique_by_queue boolean DEFAULT false, unique_states text[] DEFAULT NULL,
    unique_exclude_kind boolean DEFAULT false, notify boolean DEFAULT true)
RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT r.id FROM pelton.enqueue_result(
        kind, args::text, queue, priority, run_at, tags, metadata, max_attempts, pending, unique_by_args,
        unique_fields, unique_by_period, unique_by_queue, unique_states, unique_exclude_kind, notify) r
$$;

-- new_job is a checked job on its way from read_job to insert_jobs.
CREATE TYPE pelton.new_job AS (kind text, args text, queue text, priority smallint, max_attempts smallint, run_at timestamptz,
    pending boolean, metadata text, tags text, unique_key bytea, unique_states smallint);

-- read_job reads and checks one job of enqueue_many.
CREATE FUNCTION pelton.read_job(label text, value json) RETURNS pelton.new_job LANGUAGE plpgsql STABLE AS $$
DECLARE
    known constant text[] := '{kind,args,queue,priority,run_at,tags,metadata,max_attempts,pending,unique_by_args,
        unique_fields,unique_by_period,unique_by_queue,unique_states,unique_exclude_kind}';
    j record;
    key bytea;
    bad text;
BEGIN
    IF json_typeof(value) <> 'object' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('%sa JSON %s, want an object', label, json_typeof(value)),
            HINT = 'For example {"kind": "greet", "args": {"name": "Ann"}}.';
    END IF;
    BEGIN
        SELECT min(k.key) INTO bad FROM json_object_keys(value) AS k(key) WHERE k.key <> ALL (known);
        SELECT * INTO j FROM json_to_record(value) AS (kind text, args json, queue text, priority integer, run_at timestamptz,
            tags text[], metadata jsonb, max_attempts integer, pending boolean, unique_by_args boolean, unique_fields text[],
            unique_by_period interval, unique_by_queue boolean, unique_states text[], unique_exclude_kind boolean);
    EXCEPTION WHEN data_exception THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value', MESSAGE = label || sqlerrm,
            HINT = 'Look at the types of enqueue''s parameters; \u0000 cannot be stored.';
    END;
    IF bad IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('%sunknown field "%s"', label, left(bad, 100)),
            HINT = 'Fields are ' || array_to_string(known, ', ') || '.';
    END IF;
    j.args := coalesce(j.args, '{}');
    j.queue := coalesce(j.queue, 'default');
    j.priority := coalesce(j.priority, 1);
    j.max_attempts := coalesce(j.max_attempts, 25);
    PERFORM pelton.check_job(label, j.kind, j.args::text, j.queue, j.priority, j.run_at, j.tags, j.metadata, j.max_attempts);
    key := pelton.unique_key(label, j.kind, j.args::text, j.queue, coalesce(j.run_at, clock_timestamp()), j.unique_by_args,
        j.unique_fields, j.unique_by_period, j.unique_by_queue, j.unique_states, j.unique_exclude_kind);
    RETURN ROW(j.kind, j.args::text, j.queue, j.priority, j.max_attempts, j.run_at, coalesce(j.pending, false),
        nullif(j.metadata, '{}')::text, array_to_string(nullif(j.tags, '{}'), ','), key,
        CASE WHEN key IS NOT NULL THEN pelton.unique_mask(label, j.unique_states) END)::pelton.new_job;
END $$;

-- enqueue_many is enqueue for an array of jobs, all or none: objects whose fields are named as enqueue's parameters. Returns a
-- row per job in order, counted from 1. Faults name the job. Many times as fast as enqueue for each.
CREATE FUNCTION pelton.enqueue_many(jobs json, notify boolean DEFAULT true)
RETURNS TABLE (n integer, id bigint, skipped boolean) LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
    checked pelton.new_job[];
BEGIN
    IF coalesce(json_typeof(jobs), 'null') <> 'array' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('jobs are a JSON %s, want an array', coalesce(json_typeof(jobs), 'null')),
            HINT = 'For example [{"kind": "greet", "args": {"name": "Ann"}}].';
    END IF;
    checked := ARRAY(SELECT pelton.read_job(format('job %s: ', e.n), e.value)
        FROM json_array_elements(jobs) WITH ORDINALITY AS e(value, n) ORDER BY e.n);
    IF cardinality(checked) = 0 THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT (row_number() OVER ())::integer, i.id, i.skipped
    FROM (
        SELECT array_agg(kind) AS kinds, array_agg(args) AS args, array_agg(queue) AS queues,
            array_agg(priority) AS priorities, array_agg(max_attempts) AS max_attempts, array_agg(run_at) AS due,
            array_agg(pending) AS pending, array_agg(metadata) AS metadata, array_agg(tags) AS tags,
            CASE WHEN count(unique_key) > 0 THEN array_agg(unique_key) END AS unique_keys,
            array_agg(unique_states) AS unique_states
        FROM unnest(checked)
    ) a, pelton.insert_jobs(a.kinds, a.args, a.queues, a.priorities, a.max_attempts, a.due, a.pending, a.metadata, a.tags,
        a.unique_keys, a.unique_states, coalesce(notify, true)) i;
    IF coalesce(notify, true) THEN
        PERFORM pelton.hint_due(array_agg(run_at), array_agg(pending)) FROM unnest(checked);
    END IF;
END $$;

COMMENT ON FUNCTION pelton.enqueue(text, text, text, integer, timestamptz, text[], jsonb, integer, boolean, boolean, text[],
    interval, boolean, text[], boolean, boolean) IS
    'Enqueues a job in this transaction; returns its id, or that of the job that holds its unique key.';
COMMENT ON FUNCTION pelton.enqueue_result(text, text, text, integer, timestamptz, text[], jsonb, integer, boolean, boolean,
    text[], interval, boolean, text[], boolean, boolean) IS
    'enqueue that also tells whether another job holds the unique key (skipped).';
COMMENT ON FUNCTION pelton.enqueue_many(json, boolean) IS
    'Enqueues an array of objects whose fields are named as enqueue''s parameters, all or none.';
COMMENT ON FUNCTION pelton.insert_json(json, boolean) IS 'For client libraries: inserts jobs that were checked by the caller.';
