-- Jobs with voids that nobody has met for a while.
SELECT DISTINCT job_id FROM (SELECT v.job_id FROM pelton.job_void v
    WHERE v.at < clock_timestamp() - $1::bigint * interval '1 microsecond' ORDER BY v.at LIMIT $2) v
