-- Entries of the audit table by filter, newest first; NULL parameters filter nothing. No locks.
SELECT t.id, t.at, coalesce(t.actor, ''), coalesce(t.token, 0), coalesce(t.token_name, ''), t.role, t.action, t.target, t.before::text, t.after::text
FROM pelton.audit_trail t
WHERE ($1::text IS NULL OR t.target = $1) AND ($2::text IS NULL OR t.action = $2) AND ($3::text IS NULL OR t.actor = $3)
    AND ($4::timestamptz IS NULL OR t.at >= $4) AND ($5::bigint IS NULL OR t.id < $5)
ORDER BY t.id DESC LIMIT $6
