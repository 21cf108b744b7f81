-- The least and the greatest id of jobs; by the primary keys' ends. No locks.
SELECT coalesce((SELECT j.id FROM pelton.job j ORDER BY j.id LIMIT 1), 0), coalesce((SELECT j.id FROM pelton.job j ORDER BY j.id DESC LIMIT 1), 0)
