-- Tells whether reports wait for a run.
SELECT EXISTS (SELECT FROM pelton.flow_report WHERE run_id = $1)
