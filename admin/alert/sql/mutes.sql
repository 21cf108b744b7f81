-- Mutes that hold at a time ($1; NULL: now), by the primary key: after a rule and a subject ($2, $3), at most $4; NULL is no bound.
SELECT m.rule, m.subject, m.until, m.reason, m.created_at, m.created_by FROM pelton.alert_mute m
WHERE m.until > coalesce($1::timestamptz, clock_timestamp()) AND (m.rule, m.subject) > (coalesce($2::text, ''), coalesce($3::text, ''))
ORDER BY m.rule, m.subject LIMIT $4
