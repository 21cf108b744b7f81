-- Deletes jobs, in id order so that two callers cannot deadlock. Locks: their partitions against retention (shared), and
-- every row they have. Returns per job the state it had, running if it was left alone, missing if there was none.
SELECT u.id, pelton.remove_job(u.id, pelton.acting($2)) FROM (SELECT unnest($1::bigint[]) AS id ORDER BY 1) u
