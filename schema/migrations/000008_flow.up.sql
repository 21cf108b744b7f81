-- Flows: projects and their immutable versions, runs and their nodes. A row per node, never one blob that is rewritten.
-- Whoever advances a run locks its row, so what happens to a run has an order; everything that is to happen to it comes as a
-- row of flow_report, which is deleted in the transaction that applies it.

CREATE TABLE pelton.flow_project (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What was pushed. Versions are never changed.
CREATE TABLE pelton.flow_version (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id bigint NOT NULL REFERENCES pelton.flow_project,
    no integer NOT NULL,                -- 1, 2, 3, ... within the project
    pushed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    pushed_by text NOT NULL,            -- OS user, or API user
    format text NOT NULL,               -- flow-1.0, flow-2.0, code
    files integer NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,    -- of all files
    notes json,                         -- the import report
    UNIQUE (project_id, no)
);

-- The flows of a version, as graphs (package graph of jobs/flow).
CREATE TABLE pelton.flow (
    version_id bigint NOT NULL REFERENCES pelton.flow_version ON DELETE CASCADE,
    name text COLLATE "C" NOT NULL,
    nodes integer NOT NULL,
    graph json NOT NULL,
    PRIMARY KEY (version_id, name)
);

-- The files of a version, by content: each content is stored once, in parts of 1 MiB.
CREATE TABLE pelton.flow_file (
    version_id bigint NOT NULL REFERENCES pelton.flow_version ON DELETE CASCADE,
    path text COLLATE "C" NOT NULL,
    hash bytea NOT NULL,                -- SHA-256
    bytes bigint NOT NULL,
    executable boolean NOT NULL,
    PRIMARY KEY (version_id, path)
);
CREATE INDEX flow_file_hash ON pelton.flow_file (hash);
CREATE TABLE pelton.flow_content (
    hash bytea NOT NULL,
    part integer NOT NULL,              -- 0, 1, 2, ...; an empty file has one empty part
    data bytea NOT NULL,
    PRIMARY KEY (hash, part)
);

CREATE TABLE pelton.flow_run (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    version_id bigint NOT NULL REFERENCES pelton.flow_version,
    project_id bigint NOT NULL,
    step bigint NOT NULL DEFAULT 0,     -- raised by whoever advances the run: who kept its nodes in memory sees if they are stale
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at timestamptz,
    ended_at timestamptz,
    erased_at timestamptz,              -- what a node's job held was erased: the run does not go on again
    resumed_at timestamptz,             -- when it went on for the last time after it had ended, as a retry has it do
    before bigint,                      -- the run that this one follows by its pipeline option
    priority integer NOT NULL DEFAULT 5, -- among waiting runs of the flow, higher first
    pipeline smallint NOT NULL DEFAULT 0, -- 1 to 3: how closely it follows
    followed boolean NOT NULL DEFAULT false, -- a later run follows this one
    flow text COLLATE "C" NOT NULL,
    status text NOT NULL,
    created_by text NOT NULL,
    reason text,                        -- why it is being killed, or ended otherwise than well, for people
    trace text,                         -- what whoever follows the run has kept: the trace that it is a part of
    options json NOT NULL               -- as the run was asked for: parameters, disabled nodes, failure action, ...
) WITH (fillfactor = 60);
CREATE INDEX flow_run_live ON pelton.flow_run (project_id, flow, id) WHERE ended_at IS NULL;
CREATE INDEX flow_run_flow ON pelton.flow_run (project_id, flow, id DESC);
CREATE INDEX flow_run_project ON pelton.flow_run (project_id, id DESC);
CREATE INDEX flow_run_version ON pelton.flow_run (version_id);
CREATE INDEX flow_run_ended ON pelton.flow_run (ended_at);

-- One row per node; its key is the only index, so that every change is a HOT update.
CREATE TABLE pelton.flow_node (
    run_id bigint NOT NULL,
    no integer NOT NULL,                -- its place in the graph; behind them the instances of for_each
    job_id bigint,                      -- of its newest job
    queued_at timestamptz,
    started_at timestamptz,
    ended_at timestamptz,
    try smallint NOT NULL DEFAULT 0,    -- whole retries of the node, by a person or of its flow
    attempt smallint NOT NULL DEFAULT 0, -- attempts of its newest job, from 0
    template integer,                   -- of an instance: the node it is made of
    index integer,                      -- of an instance: its place among those of its template
    status text NOT NULL,
    path text COLLATE "C" NOT NULL,
    item text,                          -- of an instance
    reason text,                        -- why it failed, was cancelled, or counts as succeeded
    held text,                          -- who keeps it from starting
    outputs json,
    jobs bigint[],                      -- those before the newest
    PRIMARY KEY (run_id, no)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);

-- Runs that were deleted before their nodes.
CREATE TABLE pelton.flow_swept (
    run_id bigint PRIMARY KEY,
    next integer NOT NULL DEFAULT 0     -- the first node that is left
);

-- What is to happen to a run, in the order it came: ends of jobs (outcome is set), and what people or the clock want (action).
CREATE TABLE pelton.flow_report (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id bigint NOT NULL,
    job_id bigint,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at timestamptz,
    ended_at timestamptz,
    node integer,
    attempt smallint,
    outcome pelton.outcome,
    action text,
    error text,
    output json,                        -- of the job
    args json                           -- of the action
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off);
CREATE INDEX flow_report_run ON pelton.flow_report (run_id, id);

-- Reads from the table's floor on, as in 000006.

-- flow_report_first finds the least id between two positions; NULL: none.
CREATE FUNCTION pelton.flow_report_first(froms bigint[], uptos bigint[]) RETURNS bigint[]
LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_custom_plan AS $$
    SELECT array_agg((SELECT r.id FROM pelton.flow_report r WHERE r.id BETWEEN u.low AND u.high ORDER BY r.id LIMIT 1) ORDER BY u.n)
    FROM unnest(froms, uptos) WITH ORDINALITY AS u(low, high, n)
$$;
COMMENT ON FUNCTION pelton.flow_report_first IS 'least id between two positions, by index';

-- flow_reports_from lists reports from an id on, at most so many (NULL: all).
CREATE FUNCTION pelton.flow_reports_from(low bigint, most integer) RETURNS TABLE (id bigint, run_id bigint, node integer, job_id bigint)
LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_custom_plan AS $$
    SELECT r.id, r.run_id, r.node, r.job_id FROM pelton.flow_report r WHERE r.id >= low ORDER BY r.id LIMIT most
$$;
COMMENT ON FUNCTION pelton.flow_reports_from IS 'reports of flows from an id on, by index';

-- What is to happen at a time: the retry of a whole sub-flow, a limit of an SLA.
CREATE TABLE pelton.flow_timer (
    run_id bigint NOT NULL,
    node integer NOT NULL,              -- -1: the run
    what text NOT NULL,
    at timestamptz NOT NULL,
    args json,
    PRIMARY KEY (run_id, node, what)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, vacuum_truncate = off);
CREATE INDEX flow_timer_at ON pelton.flow_timer (at);
