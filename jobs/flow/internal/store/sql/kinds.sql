-- Lists the kinds that live executors work.
SELECT DISTINCT k FROM pelton.executor e, unnest(e.kinds) AS k WHERE e.stopped_at IS NULL AND e.died_at IS NULL ORDER BY k
