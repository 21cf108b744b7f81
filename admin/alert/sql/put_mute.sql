-- Makes a mute, or changes the one that is there.
INSERT INTO pelton.alert_mute (rule, subject, until, created_by, reason) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (rule, subject) DO UPDATE SET until = excluded.until, created_by = excluded.created_by, reason = excluded.reason,
    created_at = clock_timestamp()
RETURNING rule, subject, until, reason, created_at, created_by
