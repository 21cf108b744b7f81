-- Jobs by filter; NULL parameters filter nothing. From one snapshot, locks nothing. {key}, {order} and {sign} are put in by the
-- caller. Ids prune partitions: $1 <= id < $2. If $12 is set, only jobs that wait or run can match, and these are read from
-- their places, which are small; without it, from job, newest or oldest first.
SELECT r.id, r.kind, r.queue, r.priority, r.state, r.run, r.attempts, r.max_attempts, r.args::text, r.metadata::text, r.output::text,
    r.tags, r.created_at, r.scheduled_at, r.attempted_at, r.attempted_by, r.finalized_at, r.errors, r.unique_key, r.unique_states
FROM pelton.job_row r
WHERE ($1::bigint IS NULL OR r.id >= $1) AND ($2::bigint IS NULL OR r.id < $2)
    AND ($3::bigint[] IS NULL OR r.id = ANY ($3))
    AND ($4::text[] IS NULL OR r.kind = ANY ($4))
    AND ($5::text[] IS NULL OR r.queue = ANY ($5))
    AND ($6::smallint[] IS NULL OR r.priority = ANY ($6))
    AND ($7::text[] IS NULL OR r.tags && $7)
    AND ($8::text[] IS NULL OR r.tags @> $8)
    AND ($9::text IS NULL OR r.metadata @> $9::jsonb)
    AND ($10::text IS NULL OR pelton.json_contains(r.args, $10::jsonb))
    AND ($11::text[] IS NULL OR r.state = ANY ($11))
    AND ($12::text[] IS NULL OR r.id = ANY (ARRAY(
        SELECT unnest(l.job_ids) FROM pelton.job_lease l WHERE 'running' = ANY ($12)
        UNION ALL
        SELECT s.job_id FROM pelton.job_scheduled s
        WHERE s.retry AND 'retryable' = ANY ($12) OR NOT s.retry AND 'scheduled' = ANY ($12)
        UNION ALL
        SELECT p.job_id FROM pelton.job_parked p WHERE 'pending' = ANY ($12))))
    AND ($13::bigint IS NULL OR ({key}, r.id) {sign} ($14::timestamptz, $13))
ORDER BY {key} {order}, r.id {order}
LIMIT $15
