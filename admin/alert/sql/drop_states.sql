-- Deletes states of a rule that are over. Only for the holder of alert_turn's lock.
DELETE FROM pelton.alert_state WHERE rule = $1 AND subject = ANY ($2::text[])
