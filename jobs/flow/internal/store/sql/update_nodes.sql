-- Stores nodes that changed.
UPDATE pelton.flow_node n SET status = u.status, try = u.try, attempt = u.attempt, job_id = u.job_id, queued_at = u.queued_at,
    started_at = u.started_at, ended_at = u.ended_at, reason = u.reason, held = u.held, outputs = u.outputs,
    jobs = CASE WHEN u.jobs IS NULL OR u.jobs::text = 'null' THEN NULL ELSE ARRAY(SELECT json_array_elements_text(u.jobs)::bigint) END
FROM json_to_recordset($2::json) AS u(no int, path text, status text, try smallint, attempt smallint, job_id bigint, queued_at timestamptz,
    started_at timestamptz, ended_at timestamptz, template int, index int, item text, reason text, held text, outputs json, jobs json)
WHERE n.run_id = $1 AND n.no = u.no
