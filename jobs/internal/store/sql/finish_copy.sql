-- Records completed runs that have nothing to say, in one round trip: a transaction around a COPY, sent as one text. A unique
-- violation means that somebody else ended one of them: then the batch is repeated by finish_full. Sorted by key, so that two
-- batches cannot deadlock. Touches no row of anybody else; waits only for an open CompleteTx of one of its own runs.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = 200;
SET LOCAL statement_timeout = 30000;
COPY pelton.job_attempt (job_id, ended_at, started_at, executor, run, outcome, attempt) FROM STDIN BINARY;
COMMIT
