-- What jsonb cannot hold is more than NUL and numbers beyond numeric: half a surrogate pair ("\ud800") too. Such args kept jobs from being erased, and
-- searches by args from finding any.

CREATE OR REPLACE FUNCTION pelton.readable(document json) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN document::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION pelton.json_contains(doc json, fragment jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN doc::jsonb @> fragment;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN false;
END $$;
