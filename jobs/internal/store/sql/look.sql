-- Tells whether any ticket stands in these lines at or above their marks, taken or not: a plain read without locks.
SELECT EXISTS (
    SELECT FROM unnest($1::text[], $2::smallint[], $3::bigint[]) AS p(line, priority, mark)
    CROSS JOIN LATERAL (
        SELECT FROM pelton.job_ready t
        WHERE t.line = p.line AND t.priority = p.priority AND t.seq >= p.mark ORDER BY t.seq LIMIT 1) r)
