-- Cancels jobs, in the order of their ids; those that are not there are left out. Locks: as cancel, for each.
SELECT pelton.cancel(j.id, pelton.acting($4)) FROM (
    SELECT j.id FROM pelton.job j WHERE j.id = ANY ((SELECT $1::bigint[])::bigint[]) AND j.id BETWEEN $2 AND $3 ORDER BY j.id
) j
