-- Reads the voids of claimed jobs; nearly always none. No locks.
SELECT job_id, run, reason FROM pelton.job_void WHERE job_id = ANY ($1::bigint[])
