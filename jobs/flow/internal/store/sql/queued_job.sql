-- Reads how a job stands that is queued: who could take it, and whether somebody has.
SELECT j.kind, coalesce(c.queue, j.queue),
    EXISTS (SELECT FROM pelton.job_lease l WHERE j.id = ANY (l.job_ids)
        AND l.claimed_at >= pelton.job_id_time(j.id) - interval '1 minute'),
    EXISTS (SELECT FROM pelton.queue q WHERE q.name IN (coalesce(c.queue, j.queue), '*') AND q.paused_at IS NOT NULL),
    EXISTS (SELECT FROM pelton.executor e WHERE e.stopped_at IS NULL AND e.died_at IS NULL AND j.kind = ANY (e.kinds)),
    EXISTS (SELECT FROM pelton.executor e WHERE e.stopped_at IS NULL AND e.died_at IS NULL AND j.kind = ANY (e.kinds)
        AND coalesce(c.queue, j.queue) = ANY (e.queues))
FROM pelton.job j LEFT JOIN pelton.job_change c ON c.job_id = j.id WHERE j.id = $1
