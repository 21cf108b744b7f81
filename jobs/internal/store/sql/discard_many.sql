-- Removes the oldest dead letters that match; NULL parameters filter nothing. Letters that somebody holds are skipped.
SELECT d.job_id, pelton.discard(d.job_id, pelton.acting($7))
FROM (SELECT d.job_id FROM pelton.job_dead d
    WHERE ($1::bigint[] IS NULL OR d.job_id = ANY ($1)) AND ($2::text[] IS NULL OR d.kind = ANY ($2))
        AND ($3::text[] IS NULL OR d.queue = ANY ($3)) AND ($4::text IS NULL OR d.reason = $4)
        AND ($5::timestamptz IS NULL OR d.died_at >= $5) AND ($6::timestamptz IS NULL OR d.died_at < $6)
    ORDER BY d.died_at, d.job_id LIMIT $8 FOR UPDATE SKIP LOCKED) d
