-- Stores instances of nodes.
INSERT INTO pelton.flow_node (run_id, no, path, status, try, attempt, job_id, queued_at, started_at, ended_at, template, index, item, reason, held, outputs)
SELECT $1, u.no, u.path, u.status, u.try, u.attempt, u.job_id, u.queued_at, u.started_at, u.ended_at, u.template, u.index, u.item, u.reason, u.held, u.outputs
FROM json_to_recordset($2::json) AS u(no int, path text, status text, try smallint, attempt smallint, job_id bigint, queued_at timestamptz,
    started_at timestamptz, ended_at timestamptz, template int, index int, item text, reason text, held text, outputs json, jobs json)
