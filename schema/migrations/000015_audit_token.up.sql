-- The audit names the API token that was used.

ALTER TABLE pelton.audit
    ADD COLUMN token bigint,            -- the id of the API token that was used; NULL: none
    ADD COLUMN token_name text;

-- record_audit appends who changed what. With a tab, a token's id, a tab and its name behind, an actor has used that token.
CREATE OR REPLACE FUNCTION pelton.record_audit(actor text, action text, target text, before jsonb, after jsonb) RETURNS void
LANGUAGE sql VOLATILE AS $$
    INSERT INTO pelton.audit (actor, token, token_name, action, target, before, after)
    SELECT coalesce(by[1], $1), by[2]::bigint, by[3], $2, $3, $4, $5
    FROM regexp_match($1, '^([^\t]*)\t(\d{1,18})\t(.*)$') AS by
$$;

CREATE OR REPLACE VIEW pelton.audit_trail AS
    SELECT a.id, a.at, concat_ws(' as ', a.actor, a.role) AS who, a.actor, a.role, a.action, a.target,
        CASE WHEN a.target ~ '^[0-9]{1,18}$' THEN a.target::bigint END AS job_id, a.before, a.after, a.token, a.token_name
    FROM pelton.audit a;

COMMENT ON COLUMN pelton.audit_trail.token IS 'Id of the API token that was used; NULL: none.';
COMMENT ON COLUMN pelton.audit_trail.token_name IS 'Name of that token.';
