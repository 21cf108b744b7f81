-- The rules in force, and when they were last evaluated.
SELECT t.published_at, t.evaluated_at, t.published_by, t.evaluated_by, t.source, t.rules, clock_timestamp(), current_database()::text
FROM pelton.alert_turn t
