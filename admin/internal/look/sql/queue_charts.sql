-- How the runs of queues ended, and after which waits, in steps of $3 seconds from $1 to before $2. Reads the tallies of that time by their key,
-- a row per minute and queue: some ten thousand for a day of twenty queues. No locks.
SELECT t.queue, (floor(extract(epoch FROM t.minute - $1::timestamptz) / $3::integer))::integer AS step,
    sum(t.completed)::bigint, sum(t.failed)::bigint, sum(t.cancelled)::bigint, sum(t.discarded)::bigint,
    ARRAY[sum(t.waits[1]), sum(t.waits[2]), sum(t.waits[3]), sum(t.waits[4]), sum(t.waits[5]), sum(t.waits[6]), sum(t.waits[7]), sum(t.waits[8]),
        sum(t.waits[9]), sum(t.waits[10]), sum(t.waits[11]), sum(t.waits[12]), sum(t.waits[13]), sum(t.waits[14]), sum(t.waits[15]), sum(t.waits[16]),
        sum(t.waits[17]), sum(t.waits[18]), sum(t.waits[19]), sum(t.waits[20]), sum(t.waits[21]), sum(t.waits[22]), sum(t.waits[23]), sum(t.waits[24]),
        sum(t.waits[25]), sum(t.waits[26])]::bigint[]
FROM pelton.queue_tally t WHERE t.minute >= $1 AND t.minute < $2
GROUP BY t.queue, 2
