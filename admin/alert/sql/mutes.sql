-- Mutes that hold at a time.
SELECT m.rule, m.subject, m.until, m.reason, m.created_at, m.created_by FROM pelton.alert_mute m WHERE m.until > $1 ORDER BY m.rule, m.subject
