-- Processes that work, or did lately, the newest first; $1: also those that have ended; $2: only those with smaller ids. No locks.
SELECT r.id, r.name, r.host, r.pid, r.state, r.started_at, r.beat_at, r.ended_at, r.slots, r.running, r.leased, r.queues, r.kinds
FROM pelton.executor_report r WHERE ($1 OR r.ended_at IS NULL) AND ($2::bigint IS NULL OR r.id < $2)
ORDER BY r.id DESC LIMIT $3
