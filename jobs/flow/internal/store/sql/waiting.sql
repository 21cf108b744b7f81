-- Lists runs behind one that reports wait for, in order: one index look for each run.
WITH RECURSIVE run AS (
    (SELECT f.run_id FROM pelton.flow_report f WHERE f.run_id > $2 ORDER BY f.run_id LIMIT 1)
    UNION ALL
    SELECT (SELECT f.run_id FROM pelton.flow_report f WHERE f.run_id > run.run_id ORDER BY f.run_id LIMIT 1)
    FROM run WHERE run.run_id IS NOT NULL
)
SELECT run_id FROM run WHERE run_id IS NOT NULL LIMIT $1
