DROP FUNCTION pelton.insert_json(json, boolean);
