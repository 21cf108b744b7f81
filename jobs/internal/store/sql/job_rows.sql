-- Jobs by id, each with its state, changes and what its runs left, from one snapshot, in the order of the ids. Locks nothing. Prunes by id.
SELECT r.id, r.kind, r.queue, r.priority, r.state, r.run, r.attempts, r.max_attempts, r.args::text, r.metadata::text, r.output::text,
    r.tags, r.created_at, r.scheduled_at, r.attempted_at, r.attempted_by, r.finalized_at, r.errors, r.unique_key, r.unique_states
FROM pelton.job_rows($1) r ORDER BY array_position($1, r.id)
