-- Five days in the life of a queue, ended at now(): what the questions of docs/sql.md are asked of.

CREATE FUNCTION pg_temp.new_id(t timestamptz) RETURNS bigint LANGUAGE sql AS $$
    SELECT pelton.id_at(t) | (nextval('pelton.job_id_seq') & 16777215)
$$;
CREATE FUNCTION pg_temp.new_job(t timestamptz, kind text, queue text, args json DEFAULT '{}', tags text[] DEFAULT NULL,
    due timestamptz DEFAULT NULL, max_attempts int DEFAULT 25, unique_key bytea DEFAULT NULL) RETURNS bigint LANGUAGE sql AS $$
    INSERT INTO pelton.job (id, created_at, scheduled_at, kind, queue, args, tags, max_attempts, unique_key, unique_states, metadata)
    VALUES (pg_temp.new_id(t), t, due, kind, queue, args, tags, max_attempts, unique_key,
        CASE WHEN unique_key IS NOT NULL THEN 245 END, '{"source": "seed"}') RETURNING id
$$;

INSERT INTO pelton.executor (id, name, host, pid, slots, running, queues, kinds, started_at, beat_at, stopped_at, died_at)
OVERRIDING SYSTEM VALUE VALUES
    (1, 'worker-a', 'host-a', 4711, 100, 3, '{default,reports}', '{invoice,thumbnail,report}', now() - interval '6 days', now(), NULL, NULL),
    (2, 'etl-1', 'host-b', 812, 20, 1, '{etl}', '{command}', now() - interval '6 days', now(), NULL, NULL),
    (3, 'worker-b', 'host-c', 99, 50, 0, '{default}', '{invoice}', now() - interval '6 days', now() - interval '2 days',
        now() - interval '2 days', NULL),
    (4, 'worker-c', 'host-d', 31, 50, 2, '{default}', '{invoice}', now() - interval '4 days', now() - interval '3 days', NULL,
        now() - interval '3 days' + interval '30 seconds');

-- Finished jobs of five days, every twenty minutes; last night's among them.
WITH plan AS MATERIALIZED (
    SELECT i, now() - interval '10 minutes' - i * interval '20 minutes' AS at,
        (ARRAY['invoice', 'thumbnail', 'command', 'report'])[1 + i % 4] AS kind,
        (ARRAY['default', 'default', 'etl', 'reports'])[1 + i % 4] AS queue, 1 + (i * 37) % 60 AS seconds
    FROM generate_series(0, 360) i
), made AS MATERIALIZED (
    SELECT p.*, pg_temp.new_job(p.at, p.kind, p.queue, json_build_object('customer', 100 + p.i % 7, 'n', p.i),
        CASE WHEN p.i % 5 = 0 THEN '{nightly,customer-42}'::text[] END) AS id
    FROM plan p
)
INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, started_at, ended_at, executor, output)
SELECT id, 1, 1, 'completed', at + interval '1 second' * (1 + i % 9), at + interval '1 second' * (1 + i % 9 + seconds),
    CASE queue WHEN 'etl' THEN 2 ELSE 1 END, '{"rows": 12}'
FROM made;

-- Failed once, then completed.
WITH made AS MATERIALIZED (
    SELECT i, now() - i * interval '5 hours' AS at, pg_temp.new_job(now() - i * interval '5 hours', 'invoice', 'default') AS id
    FROM generate_series(1, 6) i
)
INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, started_at, ended_at, executor, due, error)
SELECT id, 1, 1, 'errored'::pelton.outcome, at + interval '1 s', at + interval '3 s', 1, at + interval '4 s',
    'dial tcp 10.0.0.' || i || ':5432: connection refused' FROM made
UNION ALL
SELECT id, 2, 2, 'completed', at + interval '5 s', at + interval '6 s', 1, NULL, NULL FROM made;

-- Out of attempts: discarded, and a dead letter. One that panicked.
WITH made AS MATERIALIZED (
    SELECT i, now() - i * interval '6 hours' AS at,
        pg_temp.new_job(now() - i * interval '6 hours', 'report', 'reports', '{"month": 3}', max_attempts => 2) AS id
    FROM generate_series(1, 4) i
), runs AS (
    INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, started_at, ended_at, executor, due, error, trace)
    SELECT id, 1, 1, 'errored'::pelton.outcome, at + interval '1 s', at + interval '2 s', 1, at + interval '3 s',
        'template month-' || i || ' not found', NULL FROM made
    UNION ALL
    SELECT id, 2, 2, 'discarded', at + interval '4 s', at + interval '5 s', 1, NULL,
        E'panic: index out of range [3] with length 3\nin report.go:12', 'goroutine 17 [running]: ...' FROM made
)
INSERT INTO pelton.job_dead (job_id, died_at, created_at, priority, max_attempts, attempt, reason, kind, queue, error, args, attempts)
SELECT id, at + interval '5 s', at, 1, 2, 2, 'exhausted', 'report', 'reports',
    E'panic: index out of range [3] with length 3\nin report.go:12', '{"month": 3}', '[{"run": 1}, {"run": 2}]' FROM made;

-- Lost with worker-c, completed by another.
WITH made AS MATERIALIZED (
    SELECT now() - interval '3 days' AS at, pg_temp.new_job(now() - interval '3 days', 'invoice', 'default') AS id
    FROM generate_series(1, 2) i
)
INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, started_at, ended_at, executor)
SELECT id, 1, 1, 'lost'::pelton.outcome, at, at + interval '31 s', 4 FROM made
UNION ALL
SELECT id, 2, 2, 'completed', at + interval '32 s', at + interval '40 s', 1 FROM made;

-- Snoozed, returned, moved, parked, then completed. Cancelled by a person. Retried by a person.
WITH made AS MATERIALIZED (
    SELECT now() - interval '26 hours' AS at, pg_temp.new_job(now() - interval '26 hours', 'thumbnail', 'default') AS id
)
INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, started_at, ended_at, executor, due)
SELECT id, 1, 0, 'snoozed'::pelton.outcome, at + interval '1 s', at + interval '2 s', 1, at + interval '60 s' FROM made
UNION ALL SELECT id, 2, 0, 'returned', at + interval '61 s', at + interval '62 s', 3, NULL FROM made
UNION ALL SELECT id, 3, 0, 'parked', NULL, at + interval '63 s', 2, NULL FROM made
UNION ALL SELECT id, 4, 0, 'moved', NULL, at + interval '64 s', NULL, NULL FROM made
UNION ALL SELECT id, 5, 1, 'completed', at + interval '65 s', at + interval '70 s', 1, NULL FROM made;

WITH cancelled AS MATERIALIZED (
    SELECT pg_temp.new_job(now() - interval '8 hours', 'thumbnail', 'default') AS id
), attempt AS (
    INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, ended_at)
    SELECT id, 1, 0, 'cancelled', now() - interval '7 hours' FROM cancelled
)
INSERT INTO pelton.audit (at, actor, action, target, before, after)
SELECT now() - interval '7 hours', 'ann', 'job.cancel', id::text, '{"state": "available"}'::jsonb, '{"state": "cancelled"}'::jsonb
FROM cancelled;

WITH retried AS MATERIALIZED (
    SELECT pg_temp.new_job(now() - interval '9 hours', 'invoice', 'default', '{"retried": true}') AS id
), attempts AS (
    INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, started_at, ended_at, executor)
    SELECT id, 1, 1, 'completed'::pelton.outcome, now() - interval '9 hours', now() - interval '8.9 hours', 1 FROM retried
    UNION ALL SELECT id, 2, 1, 'retried', NULL, now() - interval '2 hours', NULL FROM retried
), ready AS (
    INSERT INTO pelton.job_ready (entered_at, priority, line, job_ids, runs, attempts)
    SELECT now() - interval '2 hours', 1, 'default', ARRAY[id], ARRAY[3], ARRAY[1::smallint] FROM retried
)
INSERT INTO pelton.audit (at, actor, action, target, before, after)
SELECT now() - interval '2 hours', 'bob', 'job.retry', id::text, '{"state": "completed"}'::jsonb, '{"state": "available"}'::jsonb
FROM retried;

-- The line: served, paused, without an executor, and of a kind nobody knows.
INSERT INTO pelton.job_ready (entered_at, priority, line, job_ids)
SELECT now() - interval '3 minutes', 1, 'default', array_agg(pg_temp.new_job(now() - interval '3 minutes', 'invoice', 'default'))
FROM generate_series(1, 5);
INSERT INTO pelton.job_ready (entered_at, priority, line, job_ids)
SELECT now() - interval '50 minutes', 2, 'mail', array_agg(pg_temp.new_job(now() - interval '50 minutes', 'mail', 'mail'))
FROM generate_series(1, 3);
INSERT INTO pelton.job_ready (entered_at, priority, line, job_ids)
SELECT now() - interval '40 minutes', 1, 'archive', ARRAY[pg_temp.new_job(now() - interval '40 minutes', 'archive', 'archive')];
WITH made AS MATERIALIZED (SELECT pg_temp.new_job(now() - interval '30 minutes', 'pdf', 'default') AS id), parked AS (
    INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, ended_at, executor)
    SELECT id, 1, 0, 'parked', now() - interval '30 minutes', 1 FROM made
)
INSERT INTO pelton.job_ready (entered_at, priority, line, job_ids, runs)
SELECT now() - interval '30 minutes', 1, 'default/kind=pdf', ARRAY[id], ARRAY[2] FROM made;

-- Cancelled in the line, its ticket still there. Another was cancelled there and taken back: two tickets, one of them stale.
WITH made AS MATERIALIZED (SELECT pg_temp.new_job(now() - interval '20 minutes', 'mail', 'mail') AS id), void AS (
    INSERT INTO pelton.job_void (job_id, run, reason) SELECT id, 1, 'cancelled' FROM made
)
INSERT INTO pelton.job_ready (entered_at, priority, line, job_ids)
SELECT now() - interval '20 minutes', 1, 'mail', ARRAY[id] FROM made;
WITH made AS MATERIALIZED (SELECT pg_temp.new_job(now() - interval '19 minutes', 'mail', 'mail') AS id), void AS (
    INSERT INTO pelton.job_void (job_id, run, reason) SELECT id, 1, 'cancelled' FROM made
), attempts AS (
    INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, ended_at)
    SELECT id, 1, 0, 'cancelled'::pelton.outcome, now() - interval '9 minutes' FROM made
    UNION ALL SELECT id, 2, 0, 'retried', now() - interval '9 minutes' FROM made
)
INSERT INTO pelton.job_ready (entered_at, priority, line, job_ids, runs)
SELECT now() - interval '19 minutes', 1, 'mail', ARRAY[id], NULL::int[] FROM made
UNION ALL SELECT now() - interval '9 minutes', 1, 'mail', ARRAY[id], ARRAY[3] FROM made;

-- Scheduled, one of them overdue; retryable; pending.
INSERT INTO pelton.job_scheduled (job_id, wake, due)
SELECT pg_temp.new_job(now() - interval '1 hour', 'report', 'reports', due => at), at, at
FROM (SELECT now() + i * interval '25 minutes' - interval '30 minutes' AS at FROM generate_series(1, 4) i) t;
WITH made AS MATERIALIZED (SELECT pg_temp.new_job(now() - interval '1 hour', 'invoice', 'default') AS id), failed AS (
    INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, started_at, ended_at, executor, due, error)
    SELECT id, 1, 1, 'errored', now() - interval '59 minutes', now() - interval '58 minutes', 1, now() + interval '10 minutes',
        'context deadline exceeded' FROM made
)
INSERT INTO pelton.job_scheduled (job_id, wake, due, run, attempts, retry)
SELECT id, now() + interval '10 minutes', now() + interval '10 minutes', 2, 1, true FROM made;
INSERT INTO pelton.job_parked (job_id, since)
SELECT pg_temp.new_job(now() - interval '70 minutes', 'invoice', 'default'), now() - interval '70 minutes';

-- Running; a lease that also holds a run that has ended.
INSERT INTO pelton.job_lease (executor, no, claimed_at, job_ids)
SELECT 1, 1, now() - interval '15 minutes', array_agg(pg_temp.new_job(now() - interval '16 minutes', 'report', 'reports'))
FROM generate_series(1, 2);
INSERT INTO pelton.job_lease (executor, no, claimed_at, job_ids)
SELECT 2, 1, now() - interval '1 minute', ARRAY[pg_temp.new_job(now() - interval '2 minutes', 'command', 'etl'),
    (SELECT a.job_id FROM pelton.job_attempt a WHERE a.executor = 2 AND a.outcome = 'completed' LIMIT 1)];

-- Unique keys: one used again after its job was cancelled, one held.
WITH first AS MATERIALIZED (
    SELECT pg_temp.new_job(now() - interval '5 hours', 'import', 'etl', unique_key => sha256('a')) AS id
), attempt AS (
    INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, ended_at)
    SELECT id, 1, 0, 'cancelled', now() - interval '4 hours' FROM first
), second AS MATERIALIZED (
    SELECT pg_temp.new_job(now() - interval '3 hours', 'import', 'etl', unique_key => sha256('a')) AS id
), held AS (
    INSERT INTO pelton.job_unique (key, job_id, states) SELECT sha256('a'), id, 245 FROM second
)
INSERT INTO pelton.job_ready (entered_at, priority, line, job_ids) SELECT now() - interval '3 hours', 1, 'etl', ARRAY[id] FROM second;

INSERT INTO pelton.queue (name, paused_at) VALUES ('mail', now() - interval '45 minutes'), ('default', NULL);
INSERT INTO pelton.audit (at, actor, action, target, before, after)
VALUES (now() - interval '45 minutes', 'ann', 'queue.pause', 'mail', '{"paused": false}', '{"paused": true}');

-- A person changed a job.
WITH changed AS (SELECT job_id FROM pelton.job_parked LIMIT 1), change AS (
    INSERT INTO pelton.job_change (job_id, changed_at, priority, max_attempts)
    SELECT job_id, now() - interval '30 minutes', 4, 3 FROM changed
)
INSERT INTO pelton.audit (at, actor, action, target, before, after)
SELECT now() - interval '30 minutes', 'bob', 'job.update', job_id::text, '{"priority": 1}'::jsonb, '{"priority": 4}'::jsonb
FROM changed;

-- What the running commands and some ended ones printed.
INSERT INTO pelton.job_log (id, job_id, at, pos, run, stream, data)
SELECT pelton.id_at(a.ended_at) | (nextval('pelton.job_log_id_seq') & 16777215), a.job_id, a.ended_at, 13 * n, a.run, 'o',
    convert_to('line ' || lpad(n::text, 7, '0') || E'\n', 'UTF8')
FROM pelton.job_attempt a JOIN pelton.job j ON j.id = a.job_id AND j.kind = 'command', generate_series(0, 2) n;

-- Flows: extract -> load -> report. A run that failed last night, three that succeeded, one that ann killed, one that goes on, one that waits.
INSERT INTO pelton.flow_project (id, name) OVERRIDING SYSTEM VALUE VALUES (1, 'sales');
INSERT INTO pelton.flow_version (id, project_id, no, pushed_at, pushed_by, format, files, bytes) OVERRIDING SYSTEM VALUE VALUES
    (1, 1, 1, now() - interval '5 days', 'os:ann', 'flow-2.0', 3, 1200), (2, 1, 2, now() - interval '1 hour', 'os:ann', 'flow-2.0', 3, 1300);
INSERT INTO pelton.flow (version_id, name, nodes, graph) SELECT v, 'nightly', 3, '{"name": "nightly", "nodes": [
    {"path": "extract", "type": "command", "container": -1}, {"path": "load", "type": "command", "container": -1, "parents": [0]},
    {"path": "report", "type": "command", "container": -1, "parents": [1]}]}' FROM generate_series(1, 2) v;
WITH run (id, begun, took, status) AS (VALUES
    (1, now() - interval '4 days', interval '20 minutes', 'SUCCEEDED'), (2, now() - interval '3 days', interval '25 minutes', 'SUCCEEDED'),
    (3, now() - interval '2 days', interval '5 minutes', 'KILLED'), (4, current_date::timestamptz, interval '10 minutes', 'FAILED'),
    (5, now() - interval '40 minutes', interval '15 minutes', 'SUCCEEDED'), (6, now() - interval '10 minutes', NULL, 'RUNNING'),
    (7, NULL, NULL, 'QUEUED')
)
INSERT INTO pelton.flow_run (id, version_id, project_id, created_at, started_at, ended_at, flow, status, created_by, options) OVERRIDING SYSTEM VALUE
SELECT id, 1, 1, coalesce(begun, now()), begun, begun + took, 'nightly', status, 'os:ann', '{}' FROM run;
INSERT INTO pelton.flow_node (run_id, no, path, status, queued_at, started_at, ended_at, reason, job_id)
SELECT r.id, n.no, (ARRAY['extract', 'load', 'report'])[n.no + 1], s.status,
    CASE WHEN s.status NOT IN ('READY', 'CANCELLED') THEN r.started_at + n.no * interval '5 minutes' END,
    CASE WHEN s.status NOT IN ('READY', 'CANCELLED', 'QUEUED') THEN r.started_at + n.no * interval '5 minutes' + interval '1 second' END,
    CASE WHEN s.status NOT IN ('READY', 'QUEUED') THEN r.started_at + (n.no + 1) * interval '5 minutes' END,
    CASE s.status WHEN 'FAILED' THEN 'program "load" exited with code 3' END,
    CASE s.status WHEN 'QUEUED' THEN (SELECT max(job_ids[1]) FROM pelton.job_lease WHERE executor = 2) END
FROM pelton.flow_run r CROSS JOIN generate_series(0, 2) AS n(no) CROSS JOIN LATERAL (SELECT CASE
    WHEN r.status = 'SUCCEEDED' OR r.id IN (3, 4, 6) AND n.no = 0 THEN 'SUCCEEDED'
    WHEN r.id = 3 AND n.no = 1 THEN 'KILLED' WHEN r.id = 4 AND n.no = 1 THEN 'FAILED' WHEN r.id = 6 AND n.no = 1 THEN 'QUEUED'
    WHEN r.id IN (3, 4) THEN 'CANCELLED' ELSE 'READY' END AS status) s;
INSERT INTO pelton.audit (at, actor, action, target, before, after) VALUES
    (now() - interval '4 days', 'os:ann', 'flow.run', 'run 1', NULL, '{"project": "sales", "flow": "nightly", "version": 1, "options": {}}'),
    (now() - interval '2 days' + interval '6 minutes', 'os:ann', 'flow.kill', 'run 3', '{"status": "RUNNING"}', '{"nodes": null}');

-- Schedules: one of people that fires, one of a service that somebody has paused, one that is a function of a service that is away, and a backfill.
INSERT INTO pelton.schedule (id, name, owner, spec, paused_at, paused_why, paused_by) OVERRIDING SYSTEM VALUE VALUES
    (1, 'sales/nightly', '', '{"name": "sales/nightly", "cron": "0 * * * *", "job": {"kind": "report"}}', NULL, NULL, NULL),
    (2, 'shop/cleanup', 'shop', '{"name": "shop/cleanup", "cron": "@daily", "job": {"kind": "cleanup"}}', now() - interval '3 hours', 'person', 'os:ann');
INSERT INTO pelton.schedule (id, name, owner, code, spec) OVERRIDING SYSTEM VALUE VALUES
    (3, 'shop/digest', 'shop', true, '{"name": "shop/digest", "cron": "0 * * * *"}');
INSERT INTO pelton.schedule_due (schedule_id, wake, next_at, decided, code) VALUES
    (3, now() - interval '5 minutes', now() - interval '5 minutes', now() - interval '65 minutes', 'shop/shop/digest');
INSERT INTO pelton.schedule_due (schedule_id, wake, next_at, decided) VALUES
    (1, now() + interval '10 minutes', now() + interval '10 minutes', now()), (2, NULL, NULL, now() - interval '3 hours');
INSERT INTO pelton.schedule_tick (schedule_id, tick, at, decided_at, source, outcome, reason, job_id)
SELECT 1, pelton.tick_key(t.at), t.at, t.at + interval '1 second', 'clock', t.outcome, t.reason, t.job_id
FROM (
    SELECT now() - n * interval '1 hour' AS at, CASE WHEN n > 2 THEN 'skipped' ELSE 'fired' END AS outcome, CASE WHEN n > 2 THEN 'overlap' END AS reason,
        CASE WHEN n <= 2 THEN (SELECT a.job_id FROM pelton.job_attempt a WHERE a.outcome = 'completed' ORDER BY a.job_id DESC OFFSET n LIMIT 1) END AS job_id
    FROM generate_series(1, 4) AS n
) t;
INSERT INTO pelton.schedule_backfill (schedule_id, wake, from_at, to_at, decided, parallel, total, started, left_out, succeeded, only_missed, created_by)
VALUES (1, now(), now() - interval '20 hours', now() - interval '10 hours', now() - interval '15 hours', 2, 10, 4, 1, 2, true, 'os:ann');
