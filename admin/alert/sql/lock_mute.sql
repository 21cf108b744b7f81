-- A mute as it was before a change.
SELECT m.rule, m.subject, m.until, m.reason, m.created_at, m.created_by FROM pelton.alert_mute m WHERE m.rule = $1 AND m.subject = $2 FOR UPDATE
