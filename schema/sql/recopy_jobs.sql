-- Copies jobs anew, whatever their state: they changed a moment ago.
INSERT INTO {next} SELECT j.* FROM pelton.job j WHERE j.id = ANY ($1)
