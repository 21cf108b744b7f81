-- Jobs by id as a list shows them, the newest first: long texts are cut off here. Prunes by id. No locks.
SELECT r.id, r.kind, r.queue, r.priority, r.state, r.attempts, r.max_attempts, left(r.args::text, 300), r.tags, r.created_at, r.scheduled_at,
    r.attempted_at, r.finalized_at, coalesce(left(r.errors -> -1 ->> 'error', 300), '')
FROM pelton.job_rows($1) r ORDER BY r.id DESC
