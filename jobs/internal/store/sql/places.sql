-- Where jobs belong: queue and priority as a person may have changed them. A custom plan each time. No locks.
SELECT j.id, coalesce(c.queue, j.queue), coalesce(c.priority, j.priority)
FROM pelton.job j LEFT JOIN pelton.job_change c ON c.job_id = j.id WHERE j.id = ANY ((SELECT $1::bigint[])::bigint[]) AND j.id BETWEEN $2 AND $3
