-- Reads the heartbeat counters of the executors that have neither stopped nor died, and who else has leases. No locks.
SELECT e.id, e.beat, true FROM pelton.executor e WHERE e.died_at IS NULL AND e.stopped_at IS NULL
UNION ALL
SELECT DISTINCT l.executor, 0::bigint, false FROM pelton.job_lease l
WHERE NOT EXISTS (SELECT FROM pelton.executor e WHERE e.id = l.executor AND e.died_at IS NULL AND e.stopped_at IS NULL)
