-- Records what a person has enqueued: $1 actor, $2 the job or "jobs", $3 how many, ids, kinds, queues as JSON. Locks nothing.
INSERT INTO pelton.audit (actor, action, target, after) VALUES ($1, 'job.enqueue', $2, $3::text::jsonb)
