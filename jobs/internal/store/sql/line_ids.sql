-- The first $3 jobs of all tickets of the line with $1 <= id < $2, in the order of ids. Reads the line whole, and sorts no more than $3. No locks.
SELECT DISTINCT f.id FROM (
    SELECT u.id FROM (SELECT unnest(r.job_ids) AS id FROM pelton.job_ready r) u WHERE u.id >= $1::bigint AND u.id < $2::bigint ORDER BY u.id LIMIT $3
) f ORDER BY f.id
