-- Schedules: what is to be started when, and what became of every tick. docs/architecture.md tells how they are fired.
--
-- schedule holds what a person or a service wants and changes rarely. schedule_due holds where each schedule is: one narrow row,
-- locked by whoever fires it or changes it, so that what happens to a schedule has an order. schedule_tick is appended only.

CREATE TABLE pelton.schedule (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    paused_at timestamptz,              -- NULL: not paused
    version integer NOT NULL DEFAULT 1, -- raised by every change of spec
    name text COLLATE "C" NOT NULL UNIQUE,
    owner text COLLATE "C" NOT NULL DEFAULT '', -- the service whose code declares it; '': people
    code boolean NOT NULL DEFAULT false, -- only its owner's processes can fire it: when or what is a function of theirs
    paused_why text,                    -- person: by somebody; removed: its owner's code no longer declares it
    paused_by text,
    trigger_cron text,                  -- of a schedule that a push keeps in step with its flow's trigger: the times that it gave it last
    spec json NOT NULL                  -- expression, zone, rules and target, as package periodic writes them
);
CREATE INDEX schedule_owner ON pelton.schedule (owner, name) WHERE owner <> '';

-- Where each schedule is. wake is written by the database in the statement: greatest(asked, clock_timestamp()), so that the table
-- can have a floor; NULL: nothing is to come (paused, over).
CREATE TABLE pelton.schedule_due (
    schedule_id bigint PRIMARY KEY REFERENCES pelton.schedule ON DELETE CASCADE,
    wake timestamptz,                   -- when to look at it: its next tick is due, or what it waits for may have ended
    next_at timestamptz,                -- its next tick that may run; NULL: none, or not known before its last run has ended
    decided timestamptz NOT NULL,       -- every tick up to here has its row
    cut timestamptz,                    -- while it catches up: ticks before this one are skipped, the others run
    cut_until timestamptz,              -- and this is how far cut holds
    waiting timestamptz,                -- the tick that runs when the live run has ended
    live_job bigint,                    -- its newest run, if that is a job
    live_run bigint,                    -- and if it is the run of a flow
    live_since timestamptz,
    paused boolean NOT NULL DEFAULT false, -- cut was set by the end of a pause
    failures smallint NOT NULL DEFAULT 0, -- times in a row that it could not be fired
    code text COLLATE "C"               -- 'owner/name' of a schedule that only its owner can fire
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.5, vacuum_truncate = off);
-- What anybody can fire is found by time, from the floor on. What only its owner can fire lies apart: while no process of its owner is
-- there, it would be passed over by every look.
CREATE INDEX schedule_due_wake ON pelton.schedule_due (wake) WHERE code IS NULL;
CREATE INDEX schedule_due_code ON pelton.schedule_due (code, wake) WHERE code IS NOT NULL;

-- schedule_due_first finds the least wake time of what anybody can fire between two positions, in microseconds since the epoch; NULL: none.
CREATE FUNCTION pelton.schedule_due_first(froms bigint[], uptos bigint[]) RETURNS bigint[]
LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_custom_plan AS $$
    SELECT array_agg((SELECT pelton.position_of(d.wake) FROM pelton.schedule_due d
            WHERE d.code IS NULL AND d.wake BETWEEN pelton.position_time(u.low) AND pelton.position_time(u.high)
            ORDER BY d.wake LIMIT 1) ORDER BY u.n)
    FROM unnest(froms, uptos) WITH ORDINALITY AS u(low, high, n)
$$;
COMMENT ON FUNCTION pelton.schedule_due_first IS 'least wake time between two positions of schedules that anybody can fire, by index';

-- tick_key turns a tick's time into the key that ticks are partitioned by: the scale of job ids, so 2^24 to the second since
-- 2024-01-01 UTC, below zero before that.
CREATE FUNCTION pelton.tick_key(at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT floor((extract(epoch FROM at) - 1704067200) * 16777216)::bigint
$$;
COMMENT ON FUNCTION pelton.tick_key IS 'key of a tick by its time, on the scale of job ids';

-- What became of every tick: one row each, never changed. The key (schedule, time, n) admits one tick of the clock: n = 0. Above 0 are
-- ticks that the clock's rules for summer time dropped at that time, runs by hand, and runs of backfills.
CREATE TABLE pelton.schedule_tick (
    schedule_id bigint NOT NULL,
    tick bigint NOT NULL,               -- tick_key(at)
    at timestamptz NOT NULL,            -- when it was to be, whenever it was
    decided_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    job_id bigint,
    run_id bigint,                      -- of a flow
    backfill_id bigint,
    n integer NOT NULL DEFAULT 0,
    source text NOT NULL,               -- clock, trigger, backfill
    outcome text NOT NULL CHECK (outcome IN ('fired', 'skipped', 'failed')),
    reason text,                        -- of one that did not run: missed, paused, overlap, superseded, gap, repeat, duplicate, none, refused, ...
    note text,                          -- moved: its wall time was left out by the clock; further words for people
    wall timestamp,                     -- its wall time, where that is not at in the schedule's zone
    actor text,                         -- who triggered it
    PRIMARY KEY (schedule_id, tick, n)
) PARTITION BY RANGE (tick);
CREATE TABLE pelton.schedule_tick_old PARTITION OF pelton.schedule_tick FOR VALUES FROM (MINVALUE) TO (0);
CREATE TABLE pelton.schedule_tick_rest PARTITION OF pelton.schedule_tick FOR VALUES FROM (0) TO (MAXVALUE);

-- Runs of ticks of the past that somebody asked for.
CREATE TABLE pelton.schedule_backfill (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule_id bigint NOT NULL REFERENCES pelton.schedule ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    wake timestamptz,                   -- when to look at it; NULL: ended
    ended_at timestamptz,
    from_at timestamptz NOT NULL,       -- ticks from here
    to_at timestamptz NOT NULL,         -- up to here, both included
    decided timestamptz NOT NULL,       -- every tick up to here has been started or left out
    parallel integer NOT NULL DEFAULT 1,
    total integer NOT NULL,             -- ticks in the range when it was asked for
    started integer NOT NULL DEFAULT 0,
    left_out integer NOT NULL DEFAULT 0, -- had run already, or could not be started
    succeeded integer NOT NULL DEFAULT 0,
    failed integer NOT NULL DEFAULT 0,
    only_missed boolean NOT NULL,
    status text NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'completed', 'cancelled')),
    created_by text NOT NULL
);
CREATE INDEX schedule_backfill_wake ON pelton.schedule_backfill (wake) WHERE wake IS NOT NULL;
CREATE INDEX schedule_backfill_schedule ON pelton.schedule_backfill (schedule_id, id);

-- Runs of a backfill that have not ended.
CREATE TABLE pelton.schedule_backfill_live (
    backfill_id bigint NOT NULL REFERENCES pelton.schedule_backfill ON DELETE CASCADE,
    tick timestamptz NOT NULL,
    job_id bigint,
    run_id bigint,
    PRIMARY KEY (backfill_id, tick)
);
