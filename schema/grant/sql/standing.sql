-- Whether a role ($1) exists, and whether this session's role owns the tables of the schema, or is a member of their owner.
-- Locks: none.
SELECT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = $1), pg_has_role(current_user, c.relowner, 'USAGE'),
    current_user::text, pg_get_userbyid(c.relowner)::text
FROM pg_catalog.pg_class c WHERE c.oid = 'pelton.job'::regclass
