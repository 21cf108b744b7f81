-- Who changed what. $1: actor, action, target, before, after.
SELECT pelton.record_audit(pelton.acting($1), $2, $3, $4::jsonb, $5::jsonb)
