-- Has a run that waits in its flow's queue count as one that begins.
UPDATE pelton.flow_run SET status = 'PREPARING', step = step + 1 WHERE id = $1 AND status = 'QUEUED'
