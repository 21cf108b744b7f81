-- What the owners of a schema ($1) and of what is in it have given to a role ($2): on tables, views, sequences, columns, and the schema.
-- Locks: none.
WITH role AS (
    SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = $2
), relation AS (
    SELECT c.oid, c.relname, c.relowner, c.relacl, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind
    FROM pg_catalog.pg_class c WHERE c.relnamespace = to_regnamespace(quote_ident($1)) AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
        AND c.relowner <> (SELECT r.oid FROM role r)
)
SELECT '' AS object, a.privilege_type AS privilege, '' AS col, 'SCHEMA' AS kind
FROM pg_catalog.pg_namespace n, aclexplode(n.nspacl) a, role r
WHERE n.nspname = $1 AND a.grantee = r.oid AND a.grantor = n.nspowner AND n.nspowner <> r.oid
UNION ALL
SELECT c.relname, a.privilege_type, '', c.kind
FROM relation c, aclexplode(c.relacl) a, role r WHERE a.grantee = r.oid AND a.grantor = c.relowner
UNION ALL
SELECT c.relname, a.privilege_type, t.attname, c.kind
FROM relation c JOIN pg_catalog.pg_attribute t ON t.attrelid = c.oid AND t.attacl IS NOT NULL AND NOT t.attisdropped, aclexplode(t.attacl) a, role r
WHERE a.grantee = r.oid AND a.grantor = c.relowner
ORDER BY 4, 1, 2, 3
