-- Back to the function of 000003.
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
