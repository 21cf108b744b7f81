-- Lists the jobs of live runs' nodes that are to be cancelled and have not ended.
SELECT n.job_id FROM pelton.flow_run r JOIN pelton.flow_node n ON n.run_id = r.id
WHERE r.ended_at IS NULL AND n.status = 'KILLING' AND n.job_id IS NOT NULL
