-- Has a run that has ended wait to begin once more. Its row is locked.
UPDATE pelton.flow_run SET status = $2, before = $3, pipeline = $4, ended_at = NULL, reason = NULL, step = step + 1 WHERE id = $1
