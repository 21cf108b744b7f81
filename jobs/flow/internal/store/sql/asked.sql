-- Tells whether something is still to happen to a run itself, from the floor $2 on; that the next one begins is none of its business.
SELECT EXISTS (SELECT FROM pelton.flow_report WHERE run_id = $1 AND id >= $2 AND action IS DISTINCT FROM 'next')
