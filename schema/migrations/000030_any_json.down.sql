CREATE OR REPLACE FUNCTION pelton.json_contains(doc json, fragment jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN doc::jsonb @> fragment;
EXCEPTION WHEN untranslatable_character OR numeric_value_out_of_range THEN
    RETURN false;
END $$;

CREATE OR REPLACE FUNCTION pelton.readable(document json) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN document::jsonb;
EXCEPTION WHEN untranslatable_character OR numeric_value_out_of_range OR program_limit_exceeded THEN
    RETURN NULL;
END $$;
