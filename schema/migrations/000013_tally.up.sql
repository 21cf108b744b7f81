-- What the charts of the page are drawn from: how many runs ended in each minute, by queue, and how long they had waited. Executors count
-- in memory and add what they counted about once a minute, so a run costs nothing here, and a process that is killed loses the counts
-- of its last minute or so. Runs that end without an executor (cancelled while they wait, lost) are not counted. The keeper deletes rows after two days.

CREATE TABLE pelton.queue_tally (
    minute timestamptz NOT NULL,        -- its beginning
    queue text COLLATE "C" NOT NULL,
    completed integer NOT NULL,
    failed integer NOT NULL,            -- errored: will run again
    cancelled integer NOT NULL,
    discarded integer NOT NULL,         -- errored for the last time
    waits integer[] NOT NULL,           -- 26 counts of runs by their wait for a slot: below 1 ms, 2 ms, 4 ms, ... 2^24 ms, and longer
    PRIMARY KEY (minute, queue)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
