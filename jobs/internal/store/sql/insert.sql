-- Appends jobs and puts each where it waits. Locks: ROW EXCLUSIVE on the tables; the unique keys' rows until commit.
SELECT id, created_at, state, skipped
FROM pelton.insert_jobs($1::text[], $2::text[], $3::text[], $4::smallint[], $5::smallint[], $6::timestamptz[], $7::boolean[],
    $8::text[], $9::text[], $10::bytea[], $11::smallint[], $12, $13)
