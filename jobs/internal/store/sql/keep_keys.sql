-- Takes unique keys again for jobs that gave them up while they waited for a retry. Returns, in order, the job that holds each
-- key now, and has written its row. Waits for a transaction that is just taking or giving up the same key.
SELECT pelton.take_keys($1::bytea[], $2::bigint[], $3::smallint[])
