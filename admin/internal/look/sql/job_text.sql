-- The args, metadata or output of a job, whole. Prunes by id. No locks.
SELECT coalesce(CASE $2::text WHEN 'args' THEN r.args::text WHEN 'metadata' THEN r.metadata::text ELSE r.output::text END, '')
FROM pelton.job_rows(ARRAY[$1::bigint]) r
