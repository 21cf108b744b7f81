-- Records who changed what.
SELECT pelton.record_audit($1, $2, $3, $4::jsonb, $5::jsonb)
