-- Where to begin to read the $5 bytes of a run's log before chunk $3: the id of the first chunk, 0 if there is none. Reads at most $6 chunks backwards
-- by the primary key, without their data; partitions before the job's own time are pruned. No locks.
SELECT coalesce(min(b.id), 0) FROM (
    SELECT c.id, sum(c.bytes) OVER (ORDER BY c.id DESC) - c.bytes AS after FROM (
        SELECT l.id, octet_length(l.data) AS bytes FROM pelton.job_log l
        WHERE l.job_id = $1 AND l.run = $2 AND l.id < $3 AND l.id >= $1 - ($1 & 16777215) AND l.stream::text = ANY ($4::text[])
        ORDER BY l.id DESC LIMIT $6
    ) c
) b WHERE b.after < $5
