-- Ends a mute that holds.
DELETE FROM pelton.alert_mute WHERE rule = $1 AND subject = $2 AND until > clock_timestamp()
RETURNING rule, subject, until, reason, created_at, created_by
