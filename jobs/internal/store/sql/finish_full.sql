-- Records ended runs of any outcome. What follows is driven by the rows that went in, so a refused run has no effect: those
-- with a due time go to job_scheduled, the others that are to run again into the line, and flows are told of the jobs that ended
-- for good. Sorted by key.
WITH input AS MATERIALIZED (
    SELECT * FROM unnest($2::bigint[], $3::integer[], $4::smallint[], $5::text[], $6::timestamptz[], $7::timestamptz[],
        $8::timestamptz[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::smallint[],
        $16::bigint[], $17::integer[])
        AS u(job_id, run, attempt, outcome, started_at, ended_at, due, error, trace, output, metadata, carried, line, priority,
            flow_run, flow_node)
), done AS (
    INSERT INTO pelton.job_attempt (job_id, executor, run, attempt, outcome, started_at, ended_at, due, error, trace, output,
        metadata, carried)
    SELECT job_id, $1, run, attempt, outcome::pelton.outcome, started_at, ended_at, due, error, trace, output::json,
        metadata::jsonb, carried::jsonb
    FROM input ORDER BY job_id, run
    ON CONFLICT DO NOTHING
    RETURNING job_id, run, attempt, outcome, due
), scheduled AS (
    INSERT INTO pelton.job_scheduled (job_id, wake, due, run, attempts, retry)
    SELECT job_id, greatest(due, clock_timestamp()), due, run + 1, attempt, outcome = 'errored' FROM done WHERE due IS NOT NULL
    ON CONFLICT (job_id) DO UPDATE -- a row that was there is nobody's: the run that ended here decides
        SET wake = excluded.wake, due = excluded.due, run = excluded.run, attempts = excluded.attempts, retry = excluded.retry
), ready AS (
    INSERT INTO pelton.job_ready (priority, line, job_ids, runs, attempts)
    SELECT priority, line, array_agg(job_id ORDER BY job_id), array_agg(run + 1 ORDER BY job_id),
        array_agg(attempt ORDER BY job_id)
    FROM (SELECT d.*, i.line, i.priority, (row_number() OVER (PARTITION BY i.line, i.priority ORDER BY d.job_id) - 1) / 100
            AS ticket
        FROM done d JOIN input i ON i.job_id = d.job_id AND i.run = d.run
        WHERE d.due IS NULL AND d.outcome NOT IN ('completed', 'cancelled', 'discarded')) t
    GROUP BY line, priority, ticket
), reported AS (
    INSERT INTO pelton.flow_report (run_id, node, job_id, outcome, attempt, started_at, ended_at, error, output)
    SELECT i.flow_run, i.flow_node, job_id, d.outcome, d.attempt, i.started_at, i.ended_at, i.error, i.output::json
    FROM done d JOIN input i USING (job_id, run)
    WHERE i.flow_run <> 0 AND d.outcome IN ('completed', 'cancelled', 'discarded')
)
SELECT job_id, run FROM done
