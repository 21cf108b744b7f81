-- What a job of kind $1 in queue $2 waits for: whether the queue is paused, a live executor works the kind, and such a one takes jobs of the queue. Reads executors and
-- paused queues, of which there are few. No locks.
SELECT EXISTS (SELECT FROM pelton.queue q WHERE q.name IN ($2, '*') AND q.paused_at IS NOT NULL),
    EXISTS (SELECT FROM pelton.executor e WHERE e.stopped_at IS NULL AND e.died_at IS NULL AND $1::text = ANY (e.kinds)),
    EXISTS (SELECT FROM pelton.executor e WHERE e.stopped_at IS NULL AND e.died_at IS NULL AND $1::text = ANY (e.kinds) AND $2::text = ANY (e.queues))
