-- Records what a person or a service did.
-- Locks: none.
SELECT pelton.record_audit(pelton.acting($1), $2, $3, $4::jsonb, $5::jsonb)
