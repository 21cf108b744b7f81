-- Records what a person has done: $1 actor, $2 action, $3 target, $4 what it came to, as JSON. Locks nothing.
SELECT pelton.record_audit(pelton.acting($1), $2, $3, NULL, $4::text::jsonb)
