-- Counts the runs that have not ended.
SELECT count(*) FROM pelton.flow_run WHERE ended_at IS NULL
