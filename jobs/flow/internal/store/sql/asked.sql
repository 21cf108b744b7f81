-- Tells whether something is still to happen to a run itself; that the next one begins is none of its business.
SELECT EXISTS (SELECT FROM pelton.flow_report WHERE run_id = $1 AND action IS DISTINCT FROM 'next')
