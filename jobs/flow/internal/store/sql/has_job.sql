-- Tells whether a job is, or was, one of a run's nodes.
SELECT EXISTS (SELECT FROM pelton.flow_node n WHERE n.run_id = $1 AND ($2::bigint = n.job_id OR $2 = ANY (n.jobs)))
