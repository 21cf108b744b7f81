-- record_audit appends who changed what. With a tab, a token's id, a tab and its name behind, an actor has used that token.
CREATE OR REPLACE FUNCTION pelton.record_audit(actor text, action text, target text, before jsonb, after jsonb) RETURNS void
LANGUAGE sql VOLATILE AS $$
    INSERT INTO pelton.audit (actor, token, token_name, action, target, before, after)
    SELECT coalesce(by[1], $1), by[2]::bigint, by[3], $2, $3, $4, $5
    FROM regexp_match($1, '^([^\t]*)\t(\d{1,18})\t(.*)$') AS by
$$;

DROP FUNCTION pelton.acting(text);
