-- The same, for who changes it: waits for an evaluation under way.
SELECT t.published_at, t.evaluated_at, t.published_by, t.evaluated_by, t.source, t.rules, clock_timestamp(), current_database()::text
FROM pelton.alert_turn t FOR UPDATE
