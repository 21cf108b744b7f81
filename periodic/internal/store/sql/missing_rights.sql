-- What the role lacks of the rights that a client which fires schedules must have. Who owns the tables, or is a superuser, lacks nothing.
-- Locks: none.
SELECT u.right_name || ' on ' || split_part(t.name, '.', 2)
FROM (VALUES
    ('pelton.schedule', 'SELECT'), ('pelton.schedule_due', 'SELECT,UPDATE'), ('pelton.schedule_tick', 'SELECT,INSERT'),
    ('pelton.schedule_backfill', 'SELECT,UPDATE'), ('pelton.schedule_backfill_live', 'SELECT,INSERT,DELETE')
) AS t(name, rights) CROSS JOIN unnest(string_to_array(t.rights, ',')) WITH ORDINALITY AS u(right_name, n)
WHERE NOT has_table_privilege(t.name, u.right_name)
