-- Records what a person has done: $1 actor, $2 action, $3 target, $4 what it came to, as JSON. Locks nothing.
INSERT INTO pelton.audit (actor, action, target, after) VALUES ($1, $2, $3, $4::text::jsonb)
