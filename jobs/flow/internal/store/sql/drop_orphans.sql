-- Deletes the reports of a run that is gone: a job outlived it.
DELETE FROM pelton.flow_report f WHERE f.run_id = $1 AND NOT EXISTS (SELECT FROM pelton.flow_run r WHERE r.id = $1)
