-- Whether this session's role may read jobs whole, as job_rows does. Locks: none.
SELECT bool_and(has_table_privilege(t.name, 'SELECT'))
FROM (VALUES ('pelton.job'), ('pelton.job_attempt'), ('pelton.job_change'), ('pelton.job_parked'), ('pelton.executor')) AS t(name)
