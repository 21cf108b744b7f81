-- What is bad, of one rule or ($1 NULL) of all.
SELECT s.rule, s.subject, s.bad_since, s.firing_since, s.good_since, s.noticed_at, s.notices, s.value, s.text, s.told
FROM pelton.alert_state s WHERE $1::text IS NULL OR s.rule = $1 ORDER BY s.rule, s.subject
