-- insert for drivers without arrays: the jobs come as one JSON text. Locks as in insert.
SELECT id, created_at, state, skipped FROM pelton.insert_json($1::json, $2)
