-- Back to the function of 000029.
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
