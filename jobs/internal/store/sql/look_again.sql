-- The last look before sleeping: is there a ticket in these lines? Read after the open writers, so that who commits between the
-- two is seen. No locks.
SELECT EXISTS (
    SELECT FROM unnest($1::text[], $2::smallint[], $3::bigint[]) AS p(line, priority, mark)
    CROSS JOIN LATERAL (
        SELECT FROM pelton.job_ready t
        WHERE t.line = p.line AND t.priority = p.priority AND t.seq >= p.mark ORDER BY t.seq LIMIT 1) r)
