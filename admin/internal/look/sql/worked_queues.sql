-- The queues of which live executors take jobs. Reads executors, of which there are few. No locks.
SELECT DISTINCT u.queue FROM pelton.executor e CROSS JOIN unnest(e.queues) AS u(queue) WHERE e.stopped_at IS NULL AND e.died_at IS NULL
