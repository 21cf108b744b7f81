-- Pelton's tables. The word "pelton." is replaced by the configured schema when the file is read.
--
-- Facts are appended (job, job_attempt, job_log); only the line in front of the counter moves (job_ready,
-- job_scheduled, job_parked). docs/architecture.md tells the whole story.

CREATE SCHEMA IF NOT EXISTS pelton;

-- How a run ended. completed, cancelled and discarded end the job; the others are followed by a further run.
-- Counted as an attempt: completed, errored, discarded, lost, and cancelled when the run had started.
CREATE TYPE pelton.outcome AS ENUM (
    'completed',  -- worker returned nil, or CompleteTx committed
    'errored',    -- worker returned an error, panicked or timed out; a retry follows
    'cancelled',  -- cancelled by a person or by the worker
    'discarded',  -- errored or lost for the last time; the job is a dead letter
    'lost',       -- its executor died; a further run follows
    'snoozed',    -- worker asked to be run later; not counted
    'returned',   -- handed back unstarted or interrupted by a stop; not counted
    'parked',     -- taken by an executor that does not know its kind; goes to the line of its kind; not counted
    'moved',      -- a person moved the job to another queue or priority; not counted
    'retried'     -- a person asked for a further run; not counted
);

-- Ids of jobs and of log chunks are times: seconds since 2024-01-01 UTC by the database's clock in the high bits,
-- 24 bits of a sequence below. They stay below 2^53 until January 2041.
CREATE SEQUENCE pelton.job_id_seq CACHE 1;
CREATE SEQUENCE pelton.job_log_id_seq CACHE 1;

-- What was asked. Appended once, never updated; partitioned by id, dropped whole.
CREATE TABLE pelton.job (
    id bigint NOT NULL DEFAULT ((floor(extract(epoch FROM clock_timestamp()))::bigint - 1704067200) << 24)
        | (nextval('pelton.job_id_seq') & 16777215),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    scheduled_at timestamptz,           -- the time asked for; NULL: at once
    priority smallint NOT NULL DEFAULT 1 CHECK (priority BETWEEN 1 AND 4),
    max_attempts smallint NOT NULL DEFAULT 25 CHECK (max_attempts >= 1),
    unique_states smallint,             -- bit i set: state i of job_state_bit blocks another job with this key
    kind text NOT NULL,
    queue text NOT NULL DEFAULT 'default',
    args json NOT NULL,                 -- byte for byte what the caller gave
    metadata jsonb,                     -- NULL: {}
    tags text[],                        -- NULL: {}
    unique_key bytea,
    PRIMARY KEY (id)
) PARTITION BY RANGE (id);

-- What happened: one row per ended run. Its key decides who ended a run. Partitioned in step with job.
CREATE TABLE pelton.job_attempt (
    job_id bigint NOT NULL,
    ended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at timestamptz,             -- NULL: the run never started
    executor bigint,                    -- NULL: ended by a person or by a duty
    due timestamptz,                    -- when the further run was due; NULL: at once, or none
    run integer NOT NULL,               -- 1, 2, 3, ...: every row raises it
    outcome pelton.outcome NOT NULL,
    attempt smallint NOT NULL,          -- attempts counted so far, this run included
    error text,
    trace text,
    output json,
    metadata jsonb,                     -- what this run adds to the job's metadata
    carried jsonb,                      -- what the runs before this one left there, noted at every 50th run or so: who claims
                                        -- the job reads on from here; NULL: not noted
    PRIMARY KEY (job_id, run)
) PARTITION BY RANGE (job_id);
CREATE INDEX job_attempt_failed ON pelton.job_attempt (job_id, run) WHERE error IS NOT NULL;
-- Finds jobs that were discarded or cancelled among many that were completed, whose rows are not in it.
CREATE INDEX job_attempt_badly ON pelton.job_attempt (job_id) WHERE outcome IN ('cancelled', 'discarded');

-- What it printed: byte chunks, partitioned by a time id of their own.
CREATE TABLE pelton.job_log (
    id bigint NOT NULL DEFAULT ((floor(extract(epoch FROM clock_timestamp()))::bigint - 1704067200) << 24)
        | (nextval('pelton.job_log_id_seq') & 16777215),
    job_id bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    pos bigint NOT NULL,                -- offset of the first byte in the run's whole output of this stream
    run integer NOT NULL,
    stream "char" NOT NULL,             -- o: stdout, e: stderr, l: log lines (JSON), p: progress (JSON)
    data bytea NOT NULL,
    PRIMARY KEY (job_id, run, id)
) PARTITION BY RANGE (id);
ALTER TABLE pelton.job_log ALTER COLUMN data SET STORAGE EXTERNAL;

-- Everything below one floor lives in the _old partitions, the only ones where rows are deleted one by one; the _rest
-- partitions are open-ended, so that an insert always finds a place. Those between are made ahead by maintenance.
CREATE TABLE pelton.job_old PARTITION OF pelton.job FOR VALUES FROM (MINVALUE) TO (0);
CREATE TABLE pelton.job_rest PARTITION OF pelton.job FOR VALUES FROM (0) TO (MAXVALUE);
CREATE TABLE pelton.job_attempt_old PARTITION OF pelton.job_attempt FOR VALUES FROM (MINVALUE) TO (0);
CREATE TABLE pelton.job_attempt_rest PARTITION OF pelton.job_attempt FOR VALUES FROM (0) TO (MAXVALUE);
CREATE TABLE pelton.job_log_rest PARTITION OF pelton.job_log FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

-- The line: tickets, each up to 100 jobs enqueued together for one line and priority. Inserted and deleted, never edited.
-- Only the column default draws from the sequence, so that the table's lock always comes before the number.
CREATE SEQUENCE pelton.job_ready_seq CACHE 1;
CREATE TABLE pelton.job_ready (
    seq bigint NOT NULL DEFAULT nextval('pelton.job_ready_seq'),
    entered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    priority smallint NOT NULL,
    line text COLLATE "C" NOT NULL,     -- 'queue', or 'queue/kind=K' for jobs whose kind some executors do not know
    job_ids bigint[] NOT NULL,
    runs integer[],                     -- NULL: all 1
    attempts smallint[]                 -- attempts counted before; NULL: all 0
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000000000, vacuum_truncate = off);
ALTER TABLE pelton.job_ready ALTER COLUMN job_ids SET STORAGE MAIN, ALTER COLUMN runs SET STORAGE MAIN,
    ALTER COLUMN attempts SET STORAGE MAIN;
CREATE INDEX job_ready_head ON pelton.job_ready (line, priority, seq);
ALTER SEQUENCE pelton.job_ready_seq OWNED BY pelton.job_ready.seq;

-- Jobs waiting for a time. wake is written by the database in the insert: greatest(due, clock_timestamp()).
CREATE TABLE pelton.job_scheduled (
    job_id bigint PRIMARY KEY,
    wake timestamptz NOT NULL,
    due timestamptz NOT NULL,           -- the time asked for
    run integer NOT NULL DEFAULT 1,     -- the run that will enter the line
    attempts smallint NOT NULL DEFAULT 0,
    retry boolean NOT NULL DEFAULT false -- true: retryable (after an error or a loss); false: scheduled
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off);
CREATE INDEX job_scheduled_wake ON pelton.job_scheduled (wake);

-- Jobs waiting for someone: inserted as pending.
CREATE TABLE pelton.job_parked (
    job_id bigint PRIMARY KEY,
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    run integer NOT NULL DEFAULT 1,
    attempts smallint NOT NULL DEFAULT 0,
    reason text NOT NULL DEFAULT 'pending'
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_truncate = off);

-- Runs that must not start: cancelled, moved or deleted while in the line, or cancelled while running. A cancel holds for
-- its run and the one after it. Removed with the attempt that honours it.
CREATE TABLE pelton.job_void (
    job_id bigint NOT NULL,
    run integer NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    reason text NOT NULL CHECK (reason IN ('cancelled', 'moved', 'deleted')),
    PRIMARY KEY (job_id, run)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, vacuum_truncate = off);

-- What a person changed since: NULL columns stand as in job.
CREATE TABLE pelton.job_change (
    job_id bigint PRIMARY KEY,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    priority smallint CHECK (priority BETWEEN 1 AND 4),
    max_attempts smallint CHECK (max_attempts >= 1),
    queue text,
    args json,
    metadata jsonb                      -- added to the job's metadata
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, vacuum_truncate = off);

-- Keys of unique jobs. A key whose job ended outside its states, or is gone, counts as free.
CREATE TABLE pelton.job_unique (
    key bytea PRIMARY KEY,
    job_id bigint NOT NULL,
    states smallint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_truncate = off);
CREATE INDEX job_unique_job ON pelton.job_unique (job_id);

-- One row per running process incarnation; kept for a while after its end, since attempts name it.
CREATE TABLE pelton.executor (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    beat_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- for people; liveness is judged by the counter
    beat bigint NOT NULL DEFAULT 0,
    stopped_at timestamptz,             -- it said goodbye
    died_at timestamptz,                -- the reaper found it dead
    pid integer NOT NULL,
    slots integer NOT NULL DEFAULT 0,
    running integer NOT NULL DEFAULT 0,
    name text NOT NULL,                 -- the client's id
    host text NOT NULL,
    queues text[] NOT NULL DEFAULT '{}',
    kinds text[] NOT NULL DEFAULT '{}',
    labels text[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, vacuum_truncate = off);

-- The reaper's list: which runs which executor has taken. no is made by the executor before the claim is sent.
CREATE TABLE pelton.job_lease (
    executor bigint NOT NULL,
    no bigint NOT NULL,
    claimed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    job_ids bigint[] NOT NULL,          -- at most 200, so that no row goes to TOAST
    runs integer[],                     -- NULL: all 1
    attempts smallint[],                -- attempts counted before; NULL: all 0
    PRIMARY KEY (executor, no)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off);
ALTER TABLE pelton.job_lease ALTER COLUMN job_ids SET STORAGE MAIN, ALTER COLUMN runs SET STORAGE MAIN,
    ALTER COLUMN attempts SET STORAGE MAIN;

-- Who sleeps on which line: a NOTIFY is sent only for these. Read as (line, at > now - 15 s), so that dead rows cost nothing.
CREATE TABLE pelton.job_sleeper (
    line text COLLATE "C" NOT NULL,
    executor bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (line, executor)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, vacuum_truncate = off);
CREATE INDEX job_sleeper_line ON pelton.job_sleeper (line, at);

-- Low-water marks of tables with a floor (job_ready, job_scheduled), published by appending; the newest row per table
-- counts. Everything up to settled is visible or gone, but for the writers passed, whose rows lie at or above look_from.
-- Rows form a chain: follows is unique, so of two markers that decided on the same newest row one publishes; and a reader
-- that finds the chain broken after the last row it saw knows that it missed some.
CREATE TABLE pelton.floor (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    instance timestamptz NOT NULL,      -- pg_postmaster_start_time of the server whose writers were watched
    relation text NOT NULL,
    follows bigint NOT NULL,            -- the newest row when this one was decided; 0: none
    settled bigint NOT NULL,            -- a seq, or microseconds since the epoch for a table ordered by time
    look_from bigint,                   -- readers lower their marks to this position when they first read the row
    passed jsonb,                       -- writers passed while open: [{"writer","look_from"}]
    UNIQUE (relation, follows)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, vacuum_truncate = off);
CREATE INDEX floor_newest ON pelton.floor (relation, no);

-- Dead letters: a full copy with its attempts; outlives retention.
CREATE TABLE pelton.job_dead (
    job_id bigint PRIMARY KEY,
    died_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_at timestamptz NOT NULL,
    scheduled_at timestamptz,
    priority smallint NOT NULL,
    max_attempts smallint NOT NULL,
    attempt smallint NOT NULL,
    reason text NOT NULL,               -- exhausted (out of attempts), poison (lost again and again), conflict (lost its unique key)
    kind text NOT NULL,
    queue text NOT NULL,
    error text,                         -- of the last run
    args json NOT NULL,
    metadata jsonb,
    tags text[],
    attempts jsonb NOT NULL             -- [{"run","attempt","outcome","started_at","ended_at","executor","error","trace"}]
);
CREATE INDEX job_dead_died ON pelton.job_dead (died_at);
CREATE INDEX job_dead_queue ON pelton.job_dead (queue); -- how many there are of each

-- Queues that somebody named: pause and settings. A queue needs no row to work.
CREATE TABLE pelton.queue (
    name text PRIMARY KEY,              -- '*' pauses all
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    paused_at timestamptz,
    metadata jsonb NOT NULL DEFAULT '{}'
);

-- Who changed what. Appended.
CREATE TABLE pelton.audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    role text NOT NULL DEFAULT session_user, -- database role
    actor text,                         -- OS user, or API user
    action text NOT NULL,               -- job.cancel, queue.pause, dead.redrive, ...
    target text NOT NULL,               -- job id, queue name, ...
    before jsonb,
    after jsonb
);
CREATE INDEX audit_at ON pelton.audit (at);
CREATE INDEX audit_target ON pelton.audit (target, at);
