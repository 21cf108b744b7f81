-- Backfills, the newest first, of one schedule ($1), by id ($2), or with lesser ids than $4; NULL filters nothing.
-- Locks: none.
SELECT b.id, s.name, b.created_at, b.ended_at, b.from_at, b.to_at, b.parallel, b.only_missed, b.total, b.started, b.left_out, b.succeeded,
    b.failed, b.status, b.created_by,
    (SELECT count(*) FROM pelton.schedule_backfill_live l WHERE l.backfill_id = b.id), b.not_started, b.why
FROM pelton.schedule_backfill b JOIN pelton.schedule s ON s.id = b.schedule_id
WHERE ($1::text IS NULL OR s.name = $1) AND ($2::bigint IS NULL OR b.id = $2) AND b.id < coalesce($4::bigint, 9223372036854775807)
ORDER BY b.id DESC LIMIT $3
