-- Who owns the tables, who asks, and whether he may become the owner. Locks: none.
SELECT pg_get_userbyid(c.relowner)::text, current_user::text, pg_has_role(current_user, c.relowner, 'MEMBER')
FROM pg_catalog.pg_class c WHERE c.oid = 'pelton.job'::regclass
