-- Asks for the turn to reap an executor, until the transaction ends: two reapers at once would only wait for each other.
SELECT pg_try_advisory_xact_lock(('pelton.job_lease'::regclass::oid::bigint << 32) | ($1::bigint & 4294967295))
