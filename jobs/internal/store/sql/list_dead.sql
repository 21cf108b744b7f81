-- Dead letters by filter, newest death first; NULL parameters filter nothing. Locks nothing.
SELECT d.job_id, d.died_at, d.created_at, d.scheduled_at, d.priority, d.max_attempts, d.attempt, d.reason, d.kind, d.queue,
    coalesce(d.error, ''), d.args::text, coalesce(d.metadata, '{}')::text, coalesce(d.tags, '{}'), d.attempts
FROM pelton.job_dead d
WHERE ($1::bigint[] IS NULL OR d.job_id = ANY ($1)) AND ($2::text[] IS NULL OR d.kind = ANY ($2))
    AND ($3::text[] IS NULL OR d.queue = ANY ($3)) AND ($4::text IS NULL OR d.reason = $4)
    AND ($5::timestamptz IS NULL OR d.died_at >= $5) AND ($6::timestamptz IS NULL OR d.died_at < $6)
    AND ($7::bigint IS NULL OR (d.died_at, d.job_id) < ($8::timestamptz, $7))
ORDER BY d.died_at DESC, d.job_id DESC LIMIT $9
