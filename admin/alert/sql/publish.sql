-- Puts rules in force. The row is locked by lock_turn.
UPDATE pelton.alert_turn SET published_at = clock_timestamp(), published_by = $1, source = $2, rules = $3
