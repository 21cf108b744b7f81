-- Notes a limit of time that a run or a node missed.
INSERT INTO pelton.flow_sla_miss (run_id, within, project, flow, node, detail) VALUES ($1, $2, $3, $4, nullif($5, ''), $6)
