-- Enqueueing from SQL: enqueue and enqueue_many for people, triggers and other languages; insert_json for clients that can
-- pass one text parameter but no arrays (Go's database/sql). All end in insert_jobs.

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
            array_agg(coalesce(pending, false) ORDER BY n) AS pending, array_agg(metadata ORDER BY n) AS metadata,
            array_agg(array_to_string(nullif(tags, '{}'), ',') ORDER BY n) AS tags,
            CASE WHEN count(unique_key) > 0 THEN array_agg(decode(unique_key, 'hex') ORDER BY n) END AS unique_keys,
            array_agg(unique_states ORDER BY n) AS unique_states
        FROM ROWS FROM (json_to_recordset(jobs) AS (kind text, args text, queue text, priority smallint,
            max_attempts smallint, due timestamptz, pending boolean, metadata text, tags text[], unique_key text,
            unique_states smallint)) WITH ORDINALITY AS u(kind, args, queue, priority, max_attempts, due, pending, metadata,
            tags, unique_key, unique_states, n)
    ) a, pelton.insert_jobs(a.kinds, a.args, a.queues, a.priorities, a.max_attempts, a.due, a.pending, a.metadata, a.tags,
        a.unique_keys, a.unique_states, hint) i;
END $$;
