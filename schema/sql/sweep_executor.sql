-- Deletes executors that ended longer ago than jobs are kept, unless a lease still names them.
DELETE FROM pelton.executor WHERE id IN (
    SELECT e.id FROM pelton.executor e
    WHERE greatest(e.stopped_at, e.died_at) < clock_timestamp() - $1::interval
        AND NOT EXISTS (SELECT FROM pelton.job_lease l WHERE l.executor = e.id)
    ORDER BY e.id LIMIT $2 FOR UPDATE SKIP LOCKED)
