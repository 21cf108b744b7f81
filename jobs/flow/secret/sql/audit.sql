-- Who changed what. $1: actor, action, target, before, after.
SELECT pelton.record_audit($1, $2, $3, $4::jsonb, $5::jsonb)
