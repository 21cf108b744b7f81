-- A job by id, as its page shows it: long texts are cut off after $2 characters, with their whole length beside. Prunes by id. No locks.
SELECT r.kind, r.queue, r.priority, r.state, r.run, r.attempts, r.max_attempts, left(r.args::text, $2), length(r.args::text),
    left(r.metadata::text, $2), length(r.metadata::text), coalesce(left(r.output::text, $2), ''), coalesce(length(r.output::text), 0), r.tags,
    r.created_at, r.scheduled_at, r.attempted_at, r.finalized_at, coalesce(encode(r.unique_key, 'hex'), ''),
    (r.metadata -> 'pelton:flow')::text, EXISTS (SELECT FROM pelton.job_dead d WHERE d.job_id = $1),
    substring(r.metadata ->> 'redriven_from' FROM '^[0-9]{1,18}$')::bigint
FROM pelton.job_rows(ARRAY[$1::bigint]) r
