-- Names of paused queues; '*' stands for all.
SELECT q.name FROM pelton.queue q WHERE q.paused_at IS NOT NULL ORDER BY q.name
