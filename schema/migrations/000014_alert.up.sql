-- Alerts: which rules are watched, what of them is bad, and who was told. docs/alerts.md tells how they are used.
--
-- One process at a time evaluates the rules: whoever holds the lock of the row of alert_turn. It changes alert_state and enqueues the
-- notices of what changed in one transaction, so that a change is told once, whatever dies.

-- One row: the rules in force, and when they were last evaluated.
CREATE TABLE pelton.alert_turn (
    id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    published_at timestamptz,
    evaluated_at timestamptz,
    published_by text,                  -- the process that brought the rules
    evaluated_by text,
    source text,                        -- the file they are of; NULL: those that are built in
    rules json                          -- as package alert writes them, without secrets; NULL: those that are built in
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, vacuum_truncate = off);
INSERT INTO pelton.alert_turn DEFAULT VALUES;

-- What is known of a rule beside its subjects.
CREATE TABLE pelton.alert_rule (
    rule text COLLATE "C" PRIMARY KEY,
    noticed_at timestamptz,             -- the last notice of anything of it
    fault_at timestamptz,               -- since when it cannot be read
    fault text
) WITH (fillfactor = 50);

-- What is bad, or was until just now. A row goes when that has recovered.
CREATE TABLE pelton.alert_state (
    rule text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,  -- a queue, a schedule, ...
    bad_since timestamptz NOT NULL,
    firing_since timestamptz,           -- NULL: pending, not bad for long enough yet
    good_since timestamptz,             -- of one that fires: it is bad no more, but not for long enough yet
    noticed_at timestamptz,             -- the last notice of it
    notices integer NOT NULL DEFAULT 0,
    value double precision NOT NULL,
    text text NOT NULL,                 -- for people
    told text[] NOT NULL DEFAULT '{}',  -- channels that got a notice of it
    PRIMARY KEY (rule, subject)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, vacuum_truncate = off);

-- What nobody wants to be told of for a while.
CREATE TABLE pelton.alert_mute (
    rule text COLLATE "C" NOT NULL,     -- '*': any
    subject text COLLATE "C" NOT NULL,  -- '*': any
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    until timestamptz NOT NULL,
    created_by text NOT NULL,
    reason text NOT NULL DEFAULT '',
    PRIMARY KEY (rule, subject)
);

-- Limits of time (SLAs) that runs of flows or their nodes missed. Appended in the transaction that finds it out.
CREATE TABLE pelton.flow_sla_miss (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    run_id bigint NOT NULL,
    within interval NOT NULL,
    project text COLLATE "C" NOT NULL,
    flow text COLLATE "C" NOT NULL,
    node text COLLATE "C",              -- NULL: the run
    detail text NOT NULL                -- for people
);
CREATE INDEX flow_sla_miss_at ON pelton.flow_sla_miss (at);

-- Ticks that did not run although nobody wanted that: few among very many.
CREATE INDEX schedule_tick_bad ON pelton.schedule_tick (decided_at) WHERE outcome = 'failed' OR reason = 'missed';
