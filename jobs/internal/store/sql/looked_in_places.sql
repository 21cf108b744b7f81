-- Ids with $1 <= id < $2 of jobs in the places that jobs in the states $13 are in: the first $12 of each place, and of these the first $12. Places: ended runs, those that
-- ended badly by an index of their own; cancels that wait in the line; job_scheduled and job_parked by their keys; and job_lease and job_ready, read whole. Locks nothing.
SELECT w.id, true AS may FROM (
    (SELECT DISTINCT a.job_id FROM pelton.job_attempt a
        WHERE 'completed' = ANY ($13::text[]) AND a.job_id >= $1::bigint AND a.job_id < $2::bigint ORDER BY a.job_id {order} LIMIT $12)
    UNION
    (SELECT DISTINCT a.job_id FROM pelton.job_attempt a
        WHERE NOT 'completed' = ANY ($13::text[]) AND $13::text[] && '{cancelled,discarded}' AND a.outcome IN ('cancelled', 'discarded')
            AND a.job_id >= $1::bigint AND a.job_id < $2::bigint ORDER BY a.job_id {order} LIMIT $12)
    UNION
    (SELECT DISTINCT v.job_id FROM pelton.job_void v
        WHERE 'cancelled' = ANY ($13::text[]) AND v.reason = 'cancelled' AND v.job_id >= $1::bigint AND v.job_id < $2::bigint
        ORDER BY v.job_id {order} LIMIT $12)
    UNION
    (SELECT s.job_id FROM pelton.job_scheduled s
        WHERE $13::text[] && '{retryable,scheduled}' AND s.job_id >= $1::bigint AND s.job_id < $2::bigint ORDER BY s.job_id {order} LIMIT $12)
    UNION
    (SELECT p.job_id FROM pelton.job_parked p
        WHERE 'pending' = ANY ($13::text[]) AND p.job_id >= $1::bigint AND p.job_id < $2::bigint ORDER BY p.job_id {order} LIMIT $12)
    UNION
    (SELECT DISTINCT u.id FROM pelton.job_lease l, unnest(l.job_ids) AS u(id)
        WHERE 'running' = ANY ($13::text[]) AND u.id >= $1::bigint AND u.id < $2::bigint ORDER BY u.id {order} LIMIT $12)
    UNION
    (SELECT DISTINCT u.id FROM pelton.job_ready r, unnest(r.job_ids) AS u(id)
        WHERE 'available' = ANY ($13::text[]) AND u.id >= $1::bigint AND u.id < $2::bigint ORDER BY u.id {order} LIMIT $12)
) w(id) WHERE $11::bigint[] IS NULL ORDER BY w.id {order} LIMIT $12
