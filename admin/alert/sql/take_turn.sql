-- The same, for who evaluates: no row, if somebody else does, or changes it. Its lock is the right to change alert_state and alert_rule.
SELECT t.published_at, t.evaluated_at, t.published_by, t.evaluated_by, t.source, t.rules, clock_timestamp(), current_database()::text
FROM pelton.alert_turn t FOR UPDATE SKIP LOCKED
