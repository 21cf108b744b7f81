-- Which of the rights ($1 objects, $2 privileges, $3 columns or '') this session's role lacks, as their numbers. Who owns the tables, or
-- is a superuser, lacks nothing.
-- Locks: none.
SELECT w.n::integer
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w(object, privilege, col, n)
WHERE NOT CASE
    WHEN w.object LIKE '%\_seq"' THEN has_sequence_privilege(w.object, w.privilege)
    WHEN w.col <> '' THEN has_column_privilege(w.object, w.col, w.privilege)
    ELSE has_table_privilege(w.object, w.privilege)
END
ORDER BY w.n
