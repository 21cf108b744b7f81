-- Views for people: operators, auditors, reports. Their names and columns stay; new columns are appended. docs/sql.md asks
-- them questions, docs/states.md explains the states.

-- job_state is where each job is now, by place. Each branch has a constant state, so that a question for some states reads
-- those places only, and an id reads one partition. A cancelled or deleted job may still have a ticket: its void decides.
CREATE VIEW pelton.job_state (job_id, state, run, attempt, since, due, executor) AS
    SELECT t.job_id, 'available', t.run, t.attempt, t.since, NULL::timestamptz, NULL::bigint
    FROM (
        SELECT u.job_id, coalesce(u.run, 1) AS run, coalesce(u.attempts, 0::smallint) AS attempt, r.entered_at AS since
        FROM pelton.job_ready r, unnest(r.job_ids, r.runs, r.attempts) AS u(job_id, run, attempts)
    ) t
    WHERE NOT EXISTS (SELECT FROM pelton.job_void v WHERE v.job_id = t.job_id
        AND (v.reason = 'deleted' OR v.reason = 'cancelled' AND v.run >= t.run - 1))
UNION ALL
    SELECT t.job_id, 'cancelled', t.run, t.attempt, v.at, NULL, NULL
    FROM (
        SELECT u.job_id, coalesce(u.run, 1) AS run, coalesce(u.attempts, 0::smallint) AS attempt
        FROM pelton.job_ready r, unnest(r.job_ids, r.runs, r.attempts) AS u(job_id, run, attempts)
    ) t
    JOIN (SELECT v.job_id, max(v.run) AS run, max(v.at) AS at FROM pelton.job_void v WHERE v.reason = 'cancelled'
        GROUP BY v.job_id) v ON v.job_id = t.job_id AND v.run >= t.run - 1
    WHERE NOT EXISTS (SELECT FROM pelton.job_void d WHERE d.job_id = t.job_id AND d.reason = 'deleted')
        AND NOT EXISTS (SELECT FROM pelton.job_attempt a WHERE a.job_id = t.job_id AND a.run = t.run) -- retried since
UNION ALL
    SELECT t.job_id, 'running', t.run, (t.attempts + 1)::smallint, t.since, NULL, t.executor
    FROM (
        SELECT u.job_id, coalesce(u.run, 1) AS run, coalesce(u.attempts, 0::smallint) AS attempts, l.claimed_at AS since,
            l.executor
        FROM pelton.job_lease l, unnest(l.job_ids, l.runs, l.attempts) AS u(job_id, run, attempts)
    ) t
    WHERE NOT EXISTS (SELECT FROM pelton.job_attempt a WHERE a.job_id = t.job_id AND a.run = t.run)
UNION ALL
    SELECT s.job_id, 'scheduled', s.run, s.attempts, coalesce((SELECT a.ended_at FROM pelton.job_attempt a
        WHERE a.job_id = s.job_id AND a.run = s.run - 1), pelton.job_id_time(s.job_id)), s.due, NULL
    FROM pelton.job_scheduled s WHERE NOT s.retry
UNION ALL
    SELECT s.job_id, 'retryable', s.run, s.attempts, coalesce((SELECT a.ended_at FROM pelton.job_attempt a
        WHERE a.job_id = s.job_id AND a.run = s.run - 1), pelton.job_id_time(s.job_id)), s.due, NULL
    FROM pelton.job_scheduled s WHERE s.retry
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
COMMENT ON COLUMN pelton.job_state.job_id IS 'Id of the job; its high bits are the second in which it was made (job_id_time).';
COMMENT ON COLUMN pelton.job_state.state IS
    'available, running, scheduled, retryable, pending, completed, cancelled or discarded. cancelled includes a job that was cancelled in the line and still has a ticket.';
COMMENT ON COLUMN pelton.job_state.run IS 'Number of the run that waits, goes on, or was the last.';
COMMENT ON COLUMN pelton.job_state.attempt IS 'Attempts counted so far; a running one is counted.';
COMMENT ON COLUMN pelton.job_state.since IS
    'When it came into this state: entered the line, was claimed, was put off, was parked, ended.';
COMMENT ON COLUMN pelton.job_state.due IS 'When a scheduled or retryable job is due; else NULL.';
COMMENT ON COLUMN pelton.job_state.executor IS 'Executor that runs it or ran it last; NULL while it waits, or if a person or a duty ended it.';

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
