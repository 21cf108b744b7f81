-- Counts the dead letters that match and are of flows' nodes, up to $7; NULL parameters filter nothing.
SELECT count(*) FROM (SELECT FROM pelton.job_dead d
    WHERE ($1::bigint[] IS NULL OR d.job_id = ANY ($1)) AND ($2::text[] IS NULL OR d.kind = ANY ($2))
        AND ($3::text[] IS NULL OR d.queue = ANY ($3)) AND ($4::text IS NULL OR d.reason = $4)
        AND ($5::timestamptz IS NULL OR d.died_at >= $5) AND ($6::timestamptz IS NULL OR d.died_at < $6)
        AND d.metadata #>> '{pelton:flow,run}' IS NOT NULL LIMIT $7) found
