-- Which of these lines hold a ticket at or above their marks, and the newest row of floor, which tells whether the marks are to
-- be read anew: the poll of an idle executor, one statement for all its queues. No locks.
SELECT ARRAY(
    SELECT DISTINCT p.line FROM unnest($1::text[], $2::smallint[], $3::bigint[]) AS p(line, priority, mark)
    CROSS JOIN LATERAL (
        SELECT FROM pelton.job_ready t
        WHERE t.line = p.line AND t.priority = p.priority AND t.seq >= p.mark ORDER BY t.seq LIMIT 1) r),
    coalesce((SELECT max(f.no) FROM pelton.floor f WHERE f.relation = 'job_ready'), 0)
