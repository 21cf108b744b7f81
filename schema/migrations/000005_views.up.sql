-- Views for people: operators, auditors, reports. Their names and columns stay; new columns are appended. docs/sql.md asks
-- them questions, docs/states.md explains the states.

-- job_state is where each job is now, by place. Each branch has a constant state, so that a question for some states reads
-- those places only, and an id reads one partition. OFFSET 0 keeps the few rows of a place from being joined with the whole
-- history: each looks up its own. What a void says of a ticket comes first: a cancelled job may stand in the
-- line for a while, and a job that was cancelled there and taken back has an old ticket beside the new one, whose run has ended.
CREATE VIEW pelton.job_state (job_id, state, run, attempt, since, due, executor) AS
    SELECT t.job_id, 'available', t.run, t.attempt, t.since, NULL::timestamptz, NULL::bigint
    FROM (
        SELECT u.job_id, coalesce(u.run, 1) AS run, coalesce(u.attempts, 0::smallint) AS attempt, r.entered_at AS since
        FROM pelton.job_ready r, unnest(r.job_ids, r.runs, r.attempts) AS u(job_id, run, attempts)
    ) t
    WHERE NOT EXISTS (SELECT FROM pelton.job_void v WHERE v.job_id = t.job_id
        AND (v.reason = 'deleted' OR v.reason = 'cancelled' AND v.run BETWEEN t.run - 1 AND t.run))
UNION ALL
    SELECT t.job_id, 'cancelled', t.run, t.attempt,
        (SELECT max(v.at) FROM pelton.job_void v WHERE v.job_id = t.job_id AND v.reason = 'cancelled'), NULL, NULL
    FROM (
        SELECT u.job_id, coalesce(u.run, 1) AS run, coalesce(u.attempts, 0::smallint) AS attempt
        FROM pelton.job_ready r, unnest(r.job_ids, r.runs, r.attempts) AS u(job_id, run, attempts)
    ) t
    WHERE EXISTS (SELECT FROM pelton.job_void v WHERE v.job_id = t.job_id
            AND v.reason = 'cancelled' AND v.run BETWEEN t.run - 1 AND t.run
            AND NOT EXISTS (SELECT FROM pelton.job_attempt a WHERE a.job_id = v.job_id AND a.run = t.run OFFSET 0))
        AND NOT EXISTS (SELECT FROM pelton.job_void v WHERE v.job_id = t.job_id AND v.reason = 'deleted')
UNION ALL
    SELECT t.job_id, 'running', t.run, (t.attempts + 1)::smallint, t.since, NULL, t.executor
    FROM (
        SELECT u.job_id, coalesce(u.run, 1) AS run, coalesce(u.attempts, 0::smallint) AS attempts, l.claimed_at AS since,
            l.executor
        FROM pelton.job_lease l, unnest(l.job_ids, l.runs, l.attempts) AS u(job_id, run, attempts)
    ) t
    WHERE NOT EXISTS (SELECT FROM pelton.job_attempt a WHERE a.job_id = t.job_id AND a.run = t.run OFFSET 0)
UNION ALL
    SELECT s.job_id, 'scheduled', s.run, s.attempts, coalesce(a.ended_at, pelton.job_id_time(s.job_id)), s.due, NULL
    FROM pelton.job_scheduled s
    LEFT JOIN pelton.job_attempt a ON a.job_id = s.job_id AND a.run = s.run - 1
    WHERE NOT s.retry
UNION ALL
    SELECT s.job_id, 'retryable', s.run, s.attempts, coalesce(a.ended_at, pelton.job_id_time(s.job_id)), s.due, NULL
    FROM pelton.job_scheduled s
    LEFT JOIN pelton.job_attempt a ON a.job_id = s.job_id AND a.run = s.run - 1
    WHERE s.retry
UNION ALL
    SELECT p.job_id, 'pending', p.run, p.attempts, p.since, NULL, NULL
    FROM pelton.job_parked p
UNION ALL
    SELECT a.job_id, 'completed', a.run, a.attempt, a.ended_at, NULL, a.executor
    FROM pelton.job_attempt a WHERE a.outcome = 'completed'
        AND NOT EXISTS (SELECT FROM pelton.job_attempt n WHERE n.job_id = a.job_id AND n.run = a.run + 1)
UNION ALL
    SELECT a.job_id, 'cancelled', a.run, a.attempt, a.ended_at, NULL, a.executor
    FROM pelton.job_attempt a WHERE a.outcome = 'cancelled'
        AND NOT EXISTS (SELECT FROM pelton.job_attempt n WHERE n.job_id = a.job_id AND n.run = a.run + 1)
UNION ALL
    SELECT a.job_id, 'discarded', a.run, a.attempt, a.ended_at, NULL, a.executor
    FROM pelton.job_attempt a WHERE a.outcome = 'discarded'
        AND NOT EXISTS (SELECT FROM pelton.job_attempt n WHERE n.job_id = a.job_id AND n.run = a.run + 1);

COMMENT ON VIEW pelton.job_state IS 'Where each job is now: one row per job, found in exactly one place.';
COMMENT ON COLUMN pelton.job_state.job_id IS
    'Id of the job; its high bits are the second in which it was made (job_id_time).';
COMMENT ON COLUMN pelton.job_state.state IS 'available, running, scheduled, retryable, pending, completed, cancelled or
discarded. A job that was cancelled in the line counts as cancelled, although its ticket may stay for a while.';
COMMENT ON COLUMN pelton.job_state.run IS 'Number of the run that waits, goes on, or was the last.';
COMMENT ON COLUMN pelton.job_state.attempt IS 'Attempts counted so far; a running one is counted.';
COMMENT ON COLUMN pelton.job_state.since IS 'When it came here: entered the line, was claimed, put off, parked, or ended.';
COMMENT ON COLUMN pelton.job_state.due IS 'When a scheduled or retryable job is due; else NULL.';
COMMENT ON COLUMN pelton.job_state.executor IS
    'Executor that runs it or ran it last; NULL while it waits, or if a person or a
duty ended it.';

-- lost_jobs lists jobs older than grace that are in no place. There must be none, ever: what it finds is a fault of Pelton.
-- It reads the whole of job and job_attempt.
CREATE FUNCTION pelton.lost_jobs(grace interval DEFAULT '10 seconds')
RETURNS TABLE (job_id bigint, created_at timestamptz, kind text, queue text, last_run integer, last_outcome pelton.outcome)
LANGUAGE sql STABLE AS $$
    WITH lost AS MATERIALIZED (
        SELECT j.id, j.created_at, j.kind, j.queue FROM pelton.job j
        WHERE j.created_at < clock_timestamp() - grace
            AND NOT EXISTS (SELECT FROM pelton.job_state s WHERE s.job_id = j.id)
            AND NOT EXISTS (SELECT FROM pelton.job_void v WHERE v.job_id = j.id AND v.reason = 'deleted')
    )
    SELECT j.id, j.created_at, j.kind, j.queue, a.run, a.outcome
    FROM lost j
    LEFT JOIN LATERAL (SELECT a.run, a.outcome FROM pelton.job_attempt a WHERE a.job_id = j.id ORDER BY a.run DESC LIMIT 1) a
        ON true
    ORDER BY j.id
$$;
COMMENT ON FUNCTION pelton.lost_jobs(interval) IS
    'Jobs older than grace that are in no place; must be empty. Reads all jobs and attempts.';

-- running is every run that goes on. It does not read the history.
CREATE VIEW pelton.running AS
    SELECT s.job_id, j.kind, coalesce(c.queue, j.queue) AS queue, coalesce(c.priority, j.priority) AS priority, s.run, s.attempt,
        greatest(coalesce(p.ended_at, j.created_at), CASE WHEN p.job_id IS NULL THEN j.scheduled_at ELSE p.due END) AS ready_at,
        s.since AS started_at,
        s.since - greatest(coalesce(p.ended_at, j.created_at), CASE WHEN p.job_id IS NULL THEN j.scheduled_at ELSE p.due END)
            AS waited,
        clock_timestamp() - s.since AS took, s.executor, x.name AS executor_name, x.host
    FROM pelton.job_state s
    JOIN LATERAL (SELECT j.kind, j.queue, j.priority, j.created_at, j.scheduled_at FROM pelton.job j
        WHERE j.id = s.job_id OFFSET 0) j ON true
    LEFT JOIN pelton.job_change c ON c.job_id = s.job_id
    LEFT JOIN LATERAL (SELECT p.job_id, p.ended_at, p.due FROM pelton.job_attempt p
        WHERE p.job_id = s.job_id AND p.run = s.run - 1 OFFSET 0) p ON true
    LEFT JOIN pelton.executor x ON x.id = s.executor
    WHERE s.state = 'running';

COMMENT ON VIEW pelton.running IS 'Every run that goes on, and who runs it.';
COMMENT ON COLUMN pelton.running.job_id IS 'Id of the job.';
COMMENT ON COLUMN pelton.running.kind IS 'Kind of the job.';
COMMENT ON COLUMN pelton.running.queue IS 'Queue of the job as it is now.';
COMMENT ON COLUMN pelton.running.priority IS 'Priority of the job as it is now, 1 (first) to 4.';
COMMENT ON COLUMN pelton.running.run IS 'Number of the run: 1, 2, 3, ...';
COMMENT ON COLUMN pelton.running.attempt IS 'Attempts counted so far, this run included.';
COMMENT ON COLUMN pelton.running.ready_at IS 'When the run could have started: its due time, or the end of the run before.';
COMMENT ON COLUMN pelton.running.started_at IS 'When it was claimed.';
COMMENT ON COLUMN pelton.running.waited IS 'From ready_at to started_at. A pending job''s time with a person counts.';
COMMENT ON COLUMN pelton.running.took IS 'How long it has run.';
COMMENT ON COLUMN pelton.running.executor IS 'Id of the executor.';
COMMENT ON COLUMN pelton.running.executor_name IS 'Client id of the executor; NULL when its row is gone.';
COMMENT ON COLUMN pelton.running.host IS 'Host of the executor.';

-- run_report is every run, ended or going on, with how long it waited and ran.
CREATE VIEW pelton.run_report AS
    SELECT a.job_id, a.run, a.attempt, j.kind, coalesce(c.queue, j.queue) AS queue,
        coalesce(c.priority, j.priority) AS priority, a.outcome::text AS outcome,
        greatest(coalesce(p.ended_at, j.created_at), CASE WHEN p.job_id IS NULL THEN j.scheduled_at ELSE p.due END) AS ready_at,
        a.started_at, a.ended_at,
        a.started_at - greatest(coalesce(p.ended_at, j.created_at), CASE WHEN p.job_id IS NULL THEN j.scheduled_at ELSE p.due END)
            AS waited,
        a.ended_at - a.started_at AS took, a.due AS next_due, a.error, a.trace, a.output, a.metadata, a.executor,
        x.name AS executor_name, x.host
    FROM pelton.job_attempt a
    JOIN pelton.job j ON j.id = a.job_id
    LEFT JOIN pelton.job_change c ON c.job_id = a.job_id
    LEFT JOIN pelton.job_attempt p ON p.job_id = a.job_id AND p.run = a.run - 1
    LEFT JOIN pelton.executor x ON x.id = a.executor
UNION ALL
    SELECT r.job_id, r.run, r.attempt, r.kind, r.queue, r.priority, 'running', r.ready_at, r.started_at, NULL, r.waited, r.took,
        NULL, NULL, NULL, NULL, NULL, r.executor, r.executor_name, r.host
    FROM pelton.running r;

COMMENT ON VIEW pelton.run_report IS 'Every run of every job, ended or going on, with how long it waited and ran. Reads the history;
for what goes on alone see running.';
COMMENT ON COLUMN pelton.run_report.job_id IS 'Id of the job.';
COMMENT ON COLUMN pelton.run_report.run IS 'Number of the run: 1, 2, 3, ...';
COMMENT ON COLUMN pelton.run_report.attempt IS 'Attempts counted so far, this run included if it counts.';
COMMENT ON COLUMN pelton.run_report.kind IS 'Kind of the job.';
COMMENT ON COLUMN pelton.run_report.queue IS 'Queue of the job as it is now.';
COMMENT ON COLUMN pelton.run_report.priority IS 'Priority of the job as it is now, 1 (first) to 4.';
COMMENT ON COLUMN pelton.run_report.outcome IS 'How the run ended (docs/states.md), or running.';
COMMENT ON COLUMN pelton.run_report.ready_at IS
    'When the run could have started: its due time, or the end of the run before.';
COMMENT ON COLUMN pelton.run_report.started_at IS 'When it started; of a running one, when it was claimed. NULL: never.';
COMMENT ON COLUMN pelton.run_report.ended_at IS 'When it ended; NULL: it goes on.';
COMMENT ON COLUMN pelton.run_report.waited IS 'From ready_at to started_at. A pending job''s time with a person counts.';
COMMENT ON COLUMN pelton.run_report.took IS 'From the start to the end, or until now.';
COMMENT ON COLUMN pelton.run_report.next_due IS 'When the run after it was due; NULL: at once, or none.';
COMMENT ON COLUMN pelton.run_report.error IS 'Error text, if the run failed.';
COMMENT ON COLUMN pelton.run_report.trace IS 'Stack of a panic.';
COMMENT ON COLUMN pelton.run_report.output IS 'What the worker recorded as its output.';
COMMENT ON COLUMN pelton.run_report.metadata IS 'What the run added to the job''s metadata.';
COMMENT ON COLUMN pelton.run_report.executor IS 'Id of the executor; NULL: ended by a person or a duty.';
COMMENT ON COLUMN pelton.run_report.executor_name IS 'Client id of the executor; NULL when its row is gone.';
COMMENT ON COLUMN pelton.run_report.host IS 'Host of the executor.';

-- job_report is what was asked and what became of it. A lost job has a NULL state.
CREATE VIEW pelton.job_report AS
    SELECT j.id, j.kind, coalesce(c.queue, j.queue) AS queue, coalesce(c.priority, j.priority) AS priority, s.state, s.since,
        s.due, s.run, s.attempt, coalesce(c.max_attempts, j.max_attempts) AS max_attempts, j.created_at, j.scheduled_at,
        CASE WHEN s.state = 'running' THEN s.since ELSE l.started_at END AS started_at,
        CASE WHEN s.state IN ('completed', 'cancelled', 'discarded') THEN s.since END AS ended_at,
        CASE WHEN s.state = 'running' THEN clock_timestamp() - s.since ELSE l.ended_at - l.started_at END AS took,
        CASE WHEN s.state IN ('completed', 'cancelled', 'discarded') THEN s.since ELSE clock_timestamp() END - j.created_at AS age,
        (SELECT a.error FROM pelton.job_attempt a WHERE a.job_id = j.id AND a.error IS NOT NULL ORDER BY a.run DESC LIMIT 1)
            AS last_error,
        (SELECT a.output FROM pelton.job_attempt a WHERE a.job_id = j.id AND a.output IS NOT NULL ORDER BY a.run DESC LIMIT 1)
            AS output,
        coalesce(j.tags, '{}') AS tags, coalesce(c.args, j.args) AS args,
        coalesce(j.metadata, '{}') || coalesce((SELECT jsonb_object_agg(e.key, e.value ORDER BY a.run)
            FROM pelton.job_attempt a, jsonb_each(a.metadata) e WHERE a.job_id = j.id), '{}') || coalesce(c.metadata, '{}')
            AS metadata,
        s.executor, (SELECT x.name FROM pelton.executor x WHERE x.id = s.executor) AS executor_name,
        j.unique_key, c.changed_at
    FROM pelton.job j
    LEFT JOIN pelton.job_state s ON s.job_id = j.id
    LEFT JOIN pelton.job_change c ON c.job_id = j.id
    LEFT JOIN LATERAL (SELECT a.started_at, a.ended_at FROM pelton.job_attempt a
        WHERE a.job_id = j.id AND a.started_at IS NOT NULL ORDER BY a.run DESC LIMIT 1) l ON true;

COMMENT ON VIEW pelton.job_report IS 'What was asked and what became of it: a job with its state, times and last error.';
COMMENT ON COLUMN pelton.job_report.id IS 'Id of the job.';
COMMENT ON COLUMN pelton.job_report.kind IS 'Kind: which worker it is for.';
COMMENT ON COLUMN pelton.job_report.queue IS 'Queue, as changed since.';
COMMENT ON COLUMN pelton.job_report.priority IS 'Priority, 1 (first) to 4, as changed since.';
COMMENT ON COLUMN pelton.job_report.state IS 'State, as job_state has it. NULL: lost, see lost_jobs.';
COMMENT ON COLUMN pelton.job_report.since IS 'When it came into this state.';
COMMENT ON COLUMN pelton.job_report.due IS 'When a scheduled or retryable job is due.';
COMMENT ON COLUMN pelton.job_report.run IS 'Number of the run that waits, goes on, or was the last.';
COMMENT ON COLUMN pelton.job_report.attempt IS 'Attempts counted so far; a running one is counted.';
COMMENT ON COLUMN pelton.job_report.max_attempts IS 'Attempts allowed, as changed since.';
COMMENT ON COLUMN pelton.job_report.created_at IS 'When it was enqueued.';
COMMENT ON COLUMN pelton.job_report.scheduled_at IS 'The time asked for; NULL: at once.';
COMMENT ON COLUMN pelton.job_report.started_at IS 'Start of the run that goes on, or of the last that started.';
COMMENT ON COLUMN pelton.job_report.ended_at IS 'When the job ended for good; NULL: it has not.';
COMMENT ON COLUMN pelton.job_report.took IS 'Time of the run that goes on, or of the last that started.';
COMMENT ON COLUMN pelton.job_report.age IS 'From the enqueue to the end, or until now.';
COMMENT ON COLUMN pelton.job_report.last_error IS 'Error of the last run that failed.';
COMMENT ON COLUMN pelton.job_report.output IS 'Output of the last run that recorded one.';
COMMENT ON COLUMN pelton.job_report.tags IS 'Tags; empty if none.';
COMMENT ON COLUMN pelton.job_report.args IS 'Args, as changed since.';
COMMENT ON COLUMN pelton.job_report.metadata IS 'Metadata with what runs and people added.';
COMMENT ON COLUMN pelton.job_report.executor IS 'Id of the executor that runs it or ran it last.';
COMMENT ON COLUMN pelton.job_report.executor_name IS 'Client id of that executor.';
COMMENT ON COLUMN pelton.job_report.unique_key IS 'Its unique key, if it has one.';
COMMENT ON COLUMN pelton.job_report.changed_at IS 'When a person last changed it; NULL: never.';

-- executor_report is who works, or did lately. silent means no sign of life for half a minute, by the database's clock; whether
-- a process is dead is for the reaper to find, which watches its heartbeat counter.
CREATE VIEW pelton.executor_report AS
    SELECT x.id, x.name, x.host, x.pid,
        CASE WHEN x.stopped_at IS NOT NULL THEN 'stopped' WHEN x.died_at IS NOT NULL THEN 'dead'
            WHEN x.beat_at < clock_timestamp() - interval '30 seconds' THEN 'silent' ELSE 'alive' END AS state,
        x.started_at, x.beat_at, coalesce(x.stopped_at, x.died_at) AS ended_at, x.slots, x.running,
        coalesce((SELECT sum(cardinality(l.job_ids)) FROM pelton.job_lease l WHERE l.executor = x.id), 0)::integer AS leased,
        x.queues, x.kinds, x.labels
    FROM pelton.executor x;

COMMENT ON VIEW pelton.executor_report IS 'Processes that work, or did lately.';
COMMENT ON COLUMN pelton.executor_report.id IS 'Id of this incarnation of the process.';
COMMENT ON COLUMN pelton.executor_report.name IS 'Client id.';
COMMENT ON COLUMN pelton.executor_report.host IS 'Host it runs on.';
COMMENT ON COLUMN pelton.executor_report.pid IS 'Process id there.';
COMMENT ON COLUMN pelton.executor_report.state IS
    'alive, silent (no sign of life for 30 s), stopped (said goodbye) or dead (found
dead by the reaper).';
COMMENT ON COLUMN pelton.executor_report.started_at IS 'When it started.';
COMMENT ON COLUMN pelton.executor_report.beat_at IS 'Its last sign of life.';
COMMENT ON COLUMN pelton.executor_report.ended_at IS 'When it said goodbye or was found dead.';
COMMENT ON COLUMN pelton.executor_report.slots IS 'Jobs it can run at once.';
COMMENT ON COLUMN pelton.executor_report.running IS 'Jobs it ran at its last sign of life.';
COMMENT ON COLUMN pelton.executor_report.leased IS
    'Runs it has taken and not yet given up; ended ones are cleared up a little later.';
COMMENT ON COLUMN pelton.executor_report.queues IS 'Queues it works.';
COMMENT ON COLUMN pelton.executor_report.kinds IS 'Kinds it knows.';
COMMENT ON COLUMN pelton.executor_report.labels IS 'Its labels.';

-- waiting is what waits, where, and for whom. One row per waiting job.
CREATE VIEW pelton.waiting AS
    WITH live AS (
        SELECT x.queues, x.kinds FROM pelton.executor x
        WHERE x.stopped_at IS NULL AND x.died_at IS NULL AND x.beat_at > clock_timestamp() - interval '30 seconds'
    ), line AS (
        SELECT l.line, split_part(l.line, '/kind=', 1) AS queue,
            CASE WHEN q.name IS NOT NULL THEN 'somebody to resume queue ' || q.name
                WHEN NOT EXISTS (SELECT FROM live WHERE split_part(l.line, '/kind=', 1) = ANY (live.queues))
                    THEN 'an executor of queue ' || split_part(l.line, '/kind=', 1)
                WHEN l.line LIKE '%/kind=%' AND NOT EXISTS (SELECT FROM live
                        WHERE split_part(l.line, '/kind=', 1) = ANY (live.queues)
                        AND split_part(l.line, '/kind=', 2) = ANY (live.kinds))
                    THEN 'an executor of queue ' || replace(l.line, '/kind=', ' that knows kind ')
                ELSE 'a free slot' END AS waits_for
        FROM (SELECT DISTINCT r.line FROM pelton.job_ready r) l
        LEFT JOIN LATERAL (SELECT q.name FROM pelton.queue q
            WHERE q.paused_at IS NOT NULL AND q.name IN (split_part(l.line, '/kind=', 1), '*') ORDER BY q.name DESC LIMIT 1) q
            ON true
    )
    SELECT t.job_id, j.kind, l.queue, t.priority, 'available' AS state, t.line, l.waits_for, t.since, NULL::timestamptz AS due,
        clock_timestamp() - t.since AS waited, t.attempt
    FROM (
        SELECT u.job_id, coalesce(u.run, 1) AS run, coalesce(u.attempts, 0::smallint) AS attempt, r.entered_at AS since, r.line,
            r.priority
        FROM pelton.job_ready r, unnest(r.job_ids, r.runs, r.attempts) AS u(job_id, run, attempts)
    ) t
    JOIN line l ON l.line = t.line
    JOIN LATERAL (SELECT j.kind FROM pelton.job j WHERE j.id = t.job_id OFFSET 0) j ON true
    WHERE NOT EXISTS (SELECT FROM pelton.job_void v WHERE v.job_id = t.job_id
        AND (v.reason = 'deleted' OR v.reason = 'cancelled' AND v.run BETWEEN t.run - 1 AND t.run))
UNION ALL
    SELECT s.job_id, j.kind, coalesce(c.queue, j.queue), coalesce(c.priority, j.priority), s.state, NULL,
        CASE s.state WHEN 'scheduled' THEN 'its time' WHEN 'retryable' THEN 'its retry'
            ELSE 'somebody to release it (' || p.reason || ')' END,
        s.since, s.due, clock_timestamp() - s.since, s.attempt
    FROM pelton.job_state s
    JOIN LATERAL (SELECT j.kind, j.queue, j.priority FROM pelton.job j WHERE j.id = s.job_id OFFSET 0) j ON true
    LEFT JOIN pelton.job_change c ON c.job_id = s.job_id
    LEFT JOIN pelton.job_parked p ON p.job_id = s.job_id
    WHERE s.state IN ('scheduled', 'retryable', 'pending');

COMMENT ON VIEW pelton.waiting IS 'What waits, where, and for whom or what: one row per waiting job.';
COMMENT ON COLUMN pelton.waiting.job_id IS 'Id of the job.';
COMMENT ON COLUMN pelton.waiting.kind IS 'Kind of the job.';
COMMENT ON COLUMN pelton.waiting.queue IS 'Queue it waits in, or will enter.';
COMMENT ON COLUMN pelton.waiting.priority IS 'Priority it waits under, 1 (first) to 4.';
COMMENT ON COLUMN pelton.waiting.state IS 'available, scheduled, retryable or pending.';
COMMENT ON COLUMN pelton.waiting.line IS
    'Line of an available job: its queue, or queue/kind=K when some executors do not know its kind.';
COMMENT ON COLUMN pelton.waiting.waits_for IS
    'For whom or what: a free slot, an executor of the queue (none is alive), one that
knows the kind, somebody to resume the queue, its time, its retry, or somebody to release it.';
COMMENT ON COLUMN pelton.waiting.since IS 'Since when.';
COMMENT ON COLUMN pelton.waiting.due IS 'When a scheduled or retryable job is due.';
COMMENT ON COLUMN pelton.waiting.waited IS 'How long it has waited here.';
COMMENT ON COLUMN pelton.waiting.attempt IS 'Attempts counted so far.';

-- queue_report is one row per queue that holds or works something, or was named.
CREATE VIEW pelton.queue_report AS
    WITH line AS (
        SELECT split_part(r.line, '/kind=', 1) AS queue, sum(cardinality(r.job_ids)) AS n, min(r.entered_at) AS oldest
        FROM pelton.job_ready r GROUP BY 1
    ), live AS (
        SELECT u.queue, count(*) AS n FROM pelton.executor x, unnest(x.queues) AS u(queue)
        WHERE x.stopped_at IS NULL AND x.died_at IS NULL AND x.beat_at > clock_timestamp() - interval '30 seconds'
        GROUP BY 1
    ), placed AS (
        SELECT coalesce(c.queue, j.queue) AS queue, count(*) FILTER (WHERE s.state = 'running') AS running,
            count(*) FILTER (WHERE s.state = 'scheduled') AS scheduled, count(*) FILTER (WHERE s.state = 'retryable') AS retryable,
            count(*) FILTER (WHERE s.state = 'pending') AS pending
        FROM pelton.job_state s
        JOIN LATERAL (SELECT j.queue FROM pelton.job j WHERE j.id = s.job_id OFFSET 0) j ON true
        LEFT JOIN pelton.job_change c ON c.job_id = s.job_id
        WHERE s.state IN ('running', 'scheduled', 'retryable', 'pending')
        GROUP BY 1
    ), dead AS (
        SELECT d.queue, count(*) AS n FROM pelton.job_dead d GROUP BY 1
    )
    SELECT n.queue, coalesce(line.n, 0)::bigint AS available, coalesce(p.running, 0) AS running,
        coalesce(p.scheduled, 0) AS scheduled, coalesce(p.retryable, 0) AS retryable, coalesce(p.pending, 0) AS pending,
        coalesce(dead.n, 0) AS dead, line.oldest AS oldest_ready_at, clock_timestamp() - line.oldest AS oldest_ready_age,
        coalesce(q.paused_at, every.paused_at) AS paused_at, coalesce(live.n, 0) AS executors
    FROM (SELECT queue FROM line UNION SELECT queue FROM live UNION SELECT queue FROM placed UNION SELECT queue FROM dead
        UNION SELECT name FROM pelton.queue WHERE name <> '*') n
    LEFT JOIN line ON line.queue = n.queue
    LEFT JOIN live ON live.queue = n.queue
    LEFT JOIN placed p ON p.queue = n.queue
    LEFT JOIN dead ON dead.queue = n.queue
    LEFT JOIN pelton.queue q ON q.name = n.queue
    LEFT JOIN pelton.queue every ON every.name = '*';

COMMENT ON VIEW pelton.queue_report IS 'One row per queue that holds or works something, or was named.';
COMMENT ON COLUMN pelton.queue_report.queue IS 'Name of the queue.';
COMMENT ON COLUMN pelton.queue_report.available IS
    'Jobs in the line; those that were cancelled there count until their ticket is taken.';
COMMENT ON COLUMN pelton.queue_report.running IS 'Runs going on.';
COMMENT ON COLUMN pelton.queue_report.scheduled IS 'Jobs waiting for their time.';
COMMENT ON COLUMN pelton.queue_report.retryable IS 'Jobs waiting for a retry.';
COMMENT ON COLUMN pelton.queue_report.pending IS 'Jobs waiting for somebody to release them.';
COMMENT ON COLUMN pelton.queue_report.dead IS 'Dead letters.';
COMMENT ON COLUMN pelton.queue_report.oldest_ready_at IS 'When the oldest ticket entered the line.';
COMMENT ON COLUMN pelton.queue_report.oldest_ready_age IS 'How long it has stood there.';
COMMENT ON COLUMN pelton.queue_report.paused_at IS 'Since when the queue, or all, is paused; NULL: not paused.';
COMMENT ON COLUMN pelton.queue_report.executors IS 'Living executors that work it.';

-- dead_letter is job_dead with what a person wants to know first.
CREATE VIEW pelton.dead_letter AS
    SELECT d.job_id, d.died_at, d.kind, d.queue, d.reason, d.attempt, d.max_attempts, jsonb_array_length(d.attempts) AS runs,
        split_part(d.error, E'\n', 1) AS error_line, d.error, d.created_at, d.scheduled_at, d.died_at - d.created_at AS lived,
        d.priority, d.args, coalesce(d.metadata, '{}') AS metadata, coalesce(d.tags, '{}') AS tags, d.attempts
    FROM pelton.job_dead d;

COMMENT ON VIEW pelton.dead_letter IS 'Jobs that were given up, whole, with their attempts; they outlive the job itself.';
COMMENT ON COLUMN pelton.dead_letter.job_id IS 'Id the job had.';
COMMENT ON COLUMN pelton.dead_letter.died_at IS 'When it was given up.';
COMMENT ON COLUMN pelton.dead_letter.kind IS 'Kind of the job.';
COMMENT ON COLUMN pelton.dead_letter.queue IS 'Queue it was in.';
COMMENT ON COLUMN pelton.dead_letter.reason IS 'exhausted (out of attempts) or poison (lost again and again).';
COMMENT ON COLUMN pelton.dead_letter.attempt IS 'Attempts counted.';
COMMENT ON COLUMN pelton.dead_letter.max_attempts IS 'Attempts allowed.';
COMMENT ON COLUMN pelton.dead_letter.runs IS 'Runs it had, counted or not.';
COMMENT ON COLUMN pelton.dead_letter.error_line IS 'First line of the last error.';
COMMENT ON COLUMN pelton.dead_letter.error IS 'Error of the last run.';
COMMENT ON COLUMN pelton.dead_letter.created_at IS 'When it was enqueued.';
COMMENT ON COLUMN pelton.dead_letter.scheduled_at IS 'The time asked for; NULL: at once.';
COMMENT ON COLUMN pelton.dead_letter.lived IS 'From the enqueue to its death.';
COMMENT ON COLUMN pelton.dead_letter.priority IS 'Priority, 1 (first) to 4.';
COMMENT ON COLUMN pelton.dead_letter.args IS 'Args.';
COMMENT ON COLUMN pelton.dead_letter.metadata IS 'Metadata.';
COMMENT ON COLUMN pelton.dead_letter.tags IS 'Tags.';
COMMENT ON COLUMN pelton.dead_letter.attempts IS 'Its runs: run, attempt, outcome, times, executor, error, trace.';

-- audit_trail is audit, readable.
CREATE VIEW pelton.audit_trail AS
    SELECT a.id, a.at, concat_ws(' as ', a.actor, a.role) AS who, a.actor, a.role, a.action, a.target,
        CASE WHEN a.target ~ '^[0-9]{1,18}$' THEN a.target::bigint END AS job_id, a.before, a.after
    FROM pelton.audit a;

COMMENT ON VIEW pelton.audit_trail IS 'Who changed what, when.';
COMMENT ON COLUMN pelton.audit_trail.id IS 'Number of the entry.';
COMMENT ON COLUMN pelton.audit_trail.at IS 'When.';
COMMENT ON COLUMN pelton.audit_trail.who IS 'The person, as far as known, and the database role.';
COMMENT ON COLUMN pelton.audit_trail.actor IS 'OS user or API user; NULL: plain SQL.';
COMMENT ON COLUMN pelton.audit_trail.role IS 'Database role.';
COMMENT ON COLUMN pelton.audit_trail.action IS 'job.cancel, queue.pause, dead.redrive, ...';
COMMENT ON COLUMN pelton.audit_trail.target IS 'Job id, queue name, ...';
COMMENT ON COLUMN pelton.audit_trail.job_id IS 'The target as a job id, if it looks like one.';
COMMENT ON COLUMN pelton.audit_trail.before IS 'What was.';
COMMENT ON COLUMN pelton.audit_trail.after IS 'What is since.';

-- job_history is one job from the enqueue to its end. Ask for one job_id.
CREATE VIEW pelton.job_history AS
    SELECT j.id AS job_id, j.created_at AS at, 0 AS run, 'enqueued' AS event,
        concat_ws(', ', j.kind, 'queue ' || j.queue, 'priority ' || j.priority, 'due ' || j.scheduled_at) AS detail,
        NULL::text AS who
    FROM pelton.job j
UNION ALL
    SELECT a.job_id, a.started_at, a.run, 'started', NULL, x.name
    FROM pelton.job_attempt a LEFT JOIN pelton.executor x ON x.id = a.executor WHERE a.started_at IS NOT NULL
UNION ALL
    SELECT a.job_id, a.ended_at, a.run, a.outcome::text, concat_ws(', ', a.error, 'next due ' || a.due), x.name
    FROM pelton.job_attempt a LEFT JOIN pelton.executor x ON x.id = a.executor
UNION ALL
    SELECT s.job_id, s.since, s.run, 'is ' || s.state, 'due ' || s.due, x.name
    FROM pelton.job_state s LEFT JOIN pelton.executor x ON x.id = s.executor
    WHERE s.state IN ('available', 'running', 'scheduled', 'retryable', 'pending')
UNION ALL
    SELECT j.id, a.at, NULL, a.action, concat_ws(' -> ', a.before, a.after), concat_ws(' as ', a.actor, a.role)
    FROM pelton.job j JOIN pelton.audit a ON a.target = j.id::text
UNION ALL
    SELECT d.job_id, d.died_at, NULL, 'dead letter', d.reason, NULL
    FROM pelton.job_dead d;

COMMENT ON VIEW pelton.job_history IS
    'What happened to a job, from the enqueue to its end and where it is now. Ask for one job_id.';
COMMENT ON COLUMN pelton.job_history.job_id IS 'Id of the job.';
COMMENT ON COLUMN pelton.job_history.at IS 'When.';
COMMENT ON COLUMN pelton.job_history.run IS 'Run it belongs to; 0: the enqueue; NULL: none.';
COMMENT ON COLUMN pelton.job_history.event IS
    'enqueued, started, an outcome, "is" and a state, an audited action, or dead letter.';
COMMENT ON COLUMN pelton.job_history.detail IS 'What was asked, the error, the next due time, what was changed.';
COMMENT ON COLUMN pelton.job_history.who IS 'The executor, or the person.';

-- partition_size is the partitions of jobs, attempts and logs. Bounds are ids, read as times.
CREATE VIEW pelton.partition_size AS
    SELECT p.relname AS table_name, c.relname AS partition,
        CASE WHEN b.low > 0 THEN pelton.job_id_time(b.low) END AS from_time,
        CASE WHEN b.high > 0 THEN pelton.job_id_time(b.high) END AS to_time,
        nullif(c.reltuples, -1)::bigint AS rows, pg_total_relation_size(c.oid) AS bytes, pg_relation_size(c.oid) AS heap_bytes,
        pg_indexes_size(c.oid) AS index_bytes, b.low AS from_id, b.high AS to_id
    FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhrelid
    JOIN pg_class p ON p.oid = i.inhparent
    CROSS JOIN LATERAL (SELECT pg_get_expr(c.relpartbound, c.oid) AS bound) e
    CROSS JOIN LATERAL (SELECT substring(e.bound FROM 'FROM \(''?(-?[0-9]+)''?\)')::bigint AS low,
        substring(e.bound FROM 'TO \(''?(-?[0-9]+)''?\)')::bigint AS high) b
    WHERE i.inhparent IN ('pelton.job'::regclass, 'pelton.job_attempt'::regclass, 'pelton.job_log'::regclass,
        to_regclass('pelton.schedule_tick'));

COMMENT ON VIEW pelton.partition_size IS 'Partitions of jobs, attempts, logs and ticks, with their bounds and sizes.';
COMMENT ON COLUMN pelton.partition_size.table_name IS 'job, job_attempt, job_log or schedule_tick.';
COMMENT ON COLUMN pelton.partition_size.partition IS 'Name of the partition.';
COMMENT ON COLUMN pelton.partition_size.from_time IS 'Jobs (or log chunks) made from here on; NULL: no lower bound.';
COMMENT ON COLUMN pelton.partition_size.to_time IS
    'Up to here, not included; NULL: open-ended, or everything below the first bound.';
COMMENT ON COLUMN pelton.partition_size.rows IS 'Estimated rows, as of the last ANALYZE or VACUUM; NULL: never analyzed.';
COMMENT ON COLUMN pelton.partition_size.bytes IS 'Size with indexes and TOAST.';
COMMENT ON COLUMN pelton.partition_size.heap_bytes IS 'Size of the rows alone.';
COMMENT ON COLUMN pelton.partition_size.index_bytes IS 'Size of the indexes.';
COMMENT ON COLUMN pelton.partition_size.from_id IS 'Least id.';
COMMENT ON COLUMN pelton.partition_size.to_id IS 'First id above.';

-- growth is what came in per day (of the session's time zone), counted exactly: reads all of job, job_attempt and job_log, but
-- not their contents.
CREATE VIEW pelton.growth AS
    SELECT d.day, sum(d.jobs)::bigint AS jobs, sum(d.runs)::bigint AS runs, sum(d.log_chunks)::bigint AS log_chunks,
        sum(d.log_bytes)::bigint AS log_bytes
    FROM (
        SELECT j.created_at::date AS day, count(*) AS jobs, 0 AS runs, 0 AS log_chunks, 0 AS log_bytes
        FROM pelton.job j GROUP BY 1
        UNION ALL SELECT a.ended_at::date, 0, count(*), 0, 0 FROM pelton.job_attempt a GROUP BY 1
        UNION ALL SELECT l.at::date, 0, 0, count(*), sum(octet_length(l.data)) FROM pelton.job_log l GROUP BY 1
    ) d GROUP BY d.day;

COMMENT ON VIEW pelton.growth IS 'What came in per day, counted exactly. For sizes on disk see partition_size.';
COMMENT ON COLUMN pelton.growth.day IS 'Day in the session''s time zone.';
COMMENT ON COLUMN pelton.growth.jobs IS 'Jobs enqueued that are still kept.';
COMMENT ON COLUMN pelton.growth.runs IS 'Runs that ended.';
COMMENT ON COLUMN pelton.growth.log_chunks IS 'Chunks of log.';
COMMENT ON COLUMN pelton.growth.log_bytes IS 'Bytes of log.';
