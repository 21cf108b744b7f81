-- Jobs by id as a list shows them, the newest first: long texts are cut off here, errors in their middle, since a program's last line is at the end. Prunes by id. No locks.
SELECT r.id, r.kind, r.queue, r.priority, r.state, r.attempts, r.max_attempts, left(r.args::text, 300), r.tags, r.created_at, r.scheduled_at,
    r.attempted_at, r.finalized_at, coalesce(left(e.text, 300) || CASE WHEN length(e.text) > 300 THEN right(e.text, -greatest(300, length(e.text) - 300)) ELSE '' END, '')
FROM pelton.job_rows($1) r CROSS JOIN LATERAL (SELECT r.errors -> -1 ->> 'error' AS text) e ORDER BY r.id DESC
