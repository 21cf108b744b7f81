-- Notes that a run is followed.
UPDATE pelton.flow_run SET followed = true WHERE id = $1 AND NOT followed
