-- Deletes mutes that have ended. Reads the whole table, which is small.
DELETE FROM pelton.alert_mute WHERE ctid IN (
    SELECT m.ctid FROM pelton.alert_mute m WHERE m.until < clock_timestamp() - $1::interval LIMIT $2 FOR UPDATE SKIP LOCKED)
