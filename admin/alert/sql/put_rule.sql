-- Notes what became of a rule: NULL $2, no notice; NULL $4, it can be read. Only for the holder of alert_turn's lock.
INSERT INTO pelton.alert_rule AS r (rule, noticed_at, fault_at, fault) VALUES ($1, $2, CASE WHEN $4::text IS NOT NULL THEN $3::timestamptz END, $4)
ON CONFLICT (rule) DO UPDATE SET noticed_at = coalesce(excluded.noticed_at, r.noticed_at),
    fault_at = CASE WHEN excluded.fault IS NOT NULL THEN coalesce(r.fault_at, excluded.fault_at) END, fault = excluded.fault
