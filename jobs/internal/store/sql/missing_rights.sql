-- What the role lacks of the rights that a client which works, or has duties, must have. Facts are appended, the rest moves. Who
-- owns the tables, or is a superuser, lacks nothing.
-- Locks: none.
SELECT u.right_name || ' on ' || split_part(t.name, '.', 2)
FROM (VALUES
    ('pelton.job', 'SELECT,INSERT'), ('pelton.job_attempt', 'SELECT,INSERT'), ('pelton.job_log', 'SELECT,INSERT'),
    ('pelton.job_ready', 'SELECT,INSERT,UPDATE,DELETE'), ('pelton.job_scheduled', 'SELECT,INSERT,UPDATE,DELETE'),
    ('pelton.job_parked', 'SELECT,INSERT,UPDATE,DELETE'), ('pelton.job_void', 'SELECT,INSERT,UPDATE,DELETE'),
    ('pelton.job_change', 'SELECT'), ('pelton.job_unique', 'SELECT,INSERT,UPDATE,DELETE'),
    ('pelton.job_lease', 'SELECT,INSERT,DELETE'), ('pelton.job_sleeper', 'SELECT,INSERT,UPDATE,DELETE'),
    ('pelton.job_dead', 'SELECT,INSERT'), ('pelton.executor', 'SELECT,INSERT,UPDATE'), ('pelton.queue', 'SELECT'),
    ('pelton.floor', 'SELECT,INSERT'), ('pelton.flow_report', 'INSERT')
) AS t(name, rights) CROSS JOIN unnest(string_to_array(t.rights, ',')) WITH ORDINALITY AS u(right_name, n)
WHERE NOT has_table_privilege(t.name, u.right_name)
UNION ALL
SELECT s.right_name || ' on ' || split_part(s.name, '.', 2)
FROM (VALUES ('pelton.job_id_seq', 'USAGE'), ('pelton.job_ready_seq', 'USAGE'), ('pelton.job_ready_seq', 'SELECT'),
    ('pelton.job_log_id_seq', 'USAGE')) AS s(name, right_name)
WHERE NOT has_sequence_privilege(s.name, s.right_name)
