-- The queues that are paused; '*': all. Reads the queues that were named, of which there are few. No locks.
SELECT q.name FROM pelton.queue q WHERE q.paused_at IS NOT NULL
