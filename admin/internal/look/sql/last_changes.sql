-- The last change of each of these targets by one of these actions: who and when. By the index of audit on (target, at), one row a
-- target, looking at its last 1,000 entries. No locks.
SELECT t.target, a.at, coalesce(a.actor, ''), a.role, a.action
FROM unnest($1::text[]) AS t(target) CROSS JOIN LATERAL (
    SELECT b.at, b.actor, b.role, b.action FROM (
        SELECT e.at, e.actor, e.role, e.action FROM pelton.audit e WHERE e.target = t.target ORDER BY e.at DESC LIMIT 1000
    ) b WHERE b.action = ANY ($2::text[]) ORDER BY b.at DESC LIMIT 1
) a
