-- The labels of executors $1.
SELECT x.id, x.labels FROM pelton.executor x WHERE x.id = ANY ($1) AND x.labels <> '{}'
