-- Deletes old marks; the newest of each table stays, and so do for a day those that passed a writer.
DELETE FROM pelton.floor WHERE no IN (
    SELECT f.no FROM pelton.floor f
    WHERE f.at < clock_timestamp() - $1::interval
        AND (f.passed IS NULL OR f.passed = '[]' OR f.at < clock_timestamp() - interval '1 day')
        AND EXISTS (SELECT FROM pelton.floor n WHERE n.relation = f.relation AND n.no > f.no)
    ORDER BY f.no LIMIT $2 FOR UPDATE SKIP LOCKED)
