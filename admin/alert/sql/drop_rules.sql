-- Forgets rules that are no longer there.
DELETE FROM pelton.alert_rule WHERE rule <> ALL ($1::text[])
