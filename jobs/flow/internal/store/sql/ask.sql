-- Adds what a person or the clock wants of a run.
INSERT INTO pelton.flow_report (run_id, node, action, args) VALUES ($1, $2, $3, $4)
