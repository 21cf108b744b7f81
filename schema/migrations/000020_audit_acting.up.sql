-- The token of an audit entry comes by a setting of the transaction, and never out of an actor's text, which may be any.

-- acting takes who acts, as JSON: {"actor": "bob", "token": {"id": 5, "name": "ci"}}. It returns the actor, and keeps the token, or that there is none, for
-- record_audit in this transaction.
CREATE FUNCTION pelton.acting(who text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM set_config('pelton_audit.token', coalesce(nullif(who, '')::jsonb ->> 'token', ''), true);
    RETURN nullif(who, '')::jsonb ->> 'actor';
END $$;

-- record_audit appends who changed what, and by which token, if acting was told of one.
CREATE OR REPLACE FUNCTION pelton.record_audit(actor text, action text, target text, before jsonb, after jsonb) RETURNS void
LANGUAGE sql VOLATILE AS $$
    INSERT INTO pelton.audit (actor, token, token_name, action, target, before, after)
    SELECT $1, (by.token ->> 'id')::bigint, by.token ->> 'name', $2, $3, $4, $5
    FROM (SELECT nullif(current_setting('pelton_audit.token', true), '')::jsonb AS token) by
$$;
