-- Adds what an executor counted to the rows of its queues and minutes, in order of queue and minute, so that executors that do so at once
-- wait for each other and no more. $7 are the counts by wait of all rows, one after the other, $8 how many there are of a row. Locks: those rows.
INSERT INTO pelton.queue_tally AS t (minute, queue, completed, failed, cancelled, discarded, waits)
SELECT u.minute, u.queue, u.completed, u.failed, u.cancelled, u.discarded, ($7::integer[])[(u.n - 1) * $8::integer + 1 : u.n * $8::integer]
FROM unnest($1::timestamptz[], $2::text[], $3::integer[], $4::integer[], $5::integer[], $6::integer[])
    WITH ORDINALITY AS u(minute, queue, completed, failed, cancelled, discarded, n)
ORDER BY u.queue COLLATE "C", u.minute
ON CONFLICT (minute, queue) DO UPDATE SET completed = t.completed + excluded.completed, failed = t.failed + excluded.failed,
    cancelled = t.cancelled + excluded.cancelled, discarded = t.discarded + excluded.discarded,
    waits = ARRAY(SELECT coalesce(w.a, 0) + coalesce(w.b, 0) FROM unnest(t.waits, excluded.waits) WITH ORDINALITY AS w(a, b, n) ORDER BY w.n)
