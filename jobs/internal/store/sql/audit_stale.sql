-- Runs that have ended and still wait in the line, are put off or parked, without a void that stops them: they would run again.
SELECT DISTINCT w.id FROM (
    SELECT u.id, coalesce(u.run, 1) AS run FROM pelton.job_ready r, unnest(r.job_ids, r.runs) AS u(id, run)
    UNION ALL SELECT s.job_id, s.run FROM pelton.job_scheduled s
    UNION ALL SELECT p.job_id, p.run FROM pelton.job_parked p
) w
WHERE EXISTS (SELECT FROM pelton.job_attempt a WHERE a.job_id = w.id AND a.run = w.run)
    AND pelton.voided(w.id, w.run) IS NULL
ORDER BY w.id
