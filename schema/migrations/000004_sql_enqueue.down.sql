DROP FUNCTION pelton.enqueue_many(json, boolean);
DROP FUNCTION pelton.read_job(text, json);
DROP TYPE pelton.new_job;
DROP FUNCTION pelton.enqueue(text, jsonb, text, integer, timestamptz, text[], jsonb, integer, boolean, boolean, text[],
    interval, boolean, text[], boolean, boolean);
DROP FUNCTION pelton.enqueue(text, json, text, integer, timestamptz, text[], jsonb, integer, boolean, boolean, text[],
    interval, boolean, text[], boolean, boolean);
DROP FUNCTION pelton.enqueue(text, text, text, integer, timestamptz, text[], jsonb, integer, boolean, boolean, text[],
    interval, boolean, text[], boolean, boolean);
DROP FUNCTION pelton.enqueue_result(text, text, text, integer, timestamptz, text[], jsonb, integer, boolean, boolean, text[],
    interval, boolean, text[], boolean, boolean);
DROP FUNCTION pelton.unique_mask(text, text[]);
DROP FUNCTION pelton.unique_key(text, text, text, text, timestamptz, boolean, text[], interval, boolean, text[], boolean);
DROP FUNCTION pelton.unique_args(text, text, text[]);
DROP FUNCTION pelton.go_key(text);
DROP FUNCTION pelton.go_escapes(text);
DROP FUNCTION pelton.check_job(text, text, text, text, integer, timestamptz, text[], jsonb, integer);
DROP FUNCTION pelton.json_fault(text);
DROP FUNCTION pelton.insert_json(json, boolean);
DROP FUNCTION pelton.hint_due(timestamptz[], boolean[]);
