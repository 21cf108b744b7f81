-- Notes an evaluation. The row is locked by take_turn.
UPDATE pelton.alert_turn SET evaluated_at = $1, evaluated_by = $2
