-- Records what a person did.
SELECT pelton.record_audit(pelton.acting($1), $2, $3, $4::jsonb, $5::jsonb)
