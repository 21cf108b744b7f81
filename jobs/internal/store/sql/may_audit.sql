-- Tells whether this database role may write the audit. No locks.
SELECT has_table_privilege('pelton.audit', 'INSERT')
