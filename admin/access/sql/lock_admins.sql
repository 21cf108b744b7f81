-- Has one transaction at a time take an admin away: two would each see the other's. Taken after the lock of a user's row.
SELECT pg_advisory_xact_lock(hashtextextended('pelton.access_role', 0))
