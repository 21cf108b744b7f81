-- Tells whether there are voids or unique keys at all. No locks.
SELECT EXISTS (SELECT FROM pelton.job_void), EXISTS (SELECT FROM pelton.job_unique)
