-- As before, but that a job that waits is due when it is made available: its run has waited since then, and not since a time to come.
CREATE OR REPLACE FUNCTION pelton.retry(job bigint, actor text DEFAULT NULL) RETURNS text LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    place record;
    last record;
    was text;
BEGIN
    PERFORM pelton.lock_job_partition(job);
    place := pelton.leave_place(job);
    IF place.waited THEN
        PERFORM pelton.retake_key(job);
        DELETE FROM pelton.job_void v WHERE v.job_id = job AND v.run BETWEEN place.run - 1 AND place.run; -- no ticket has it
        -- changed_at stays: it says which output is the newer one. Before the ticket, which others wait for as long as this may wait.
        INSERT INTO pelton.job_change AS c (job_id, due, due_run) VALUES (job, clock_timestamp(), place.run)
        ON CONFLICT (job_id) DO UPDATE SET due = excluded.due, due_run = excluded.due_run;
        PERFORM pelton.enter_line(job, place.run, place.attempts);
        was := place.state;
    ELSE
        FOR look IN 1..2 LOOP
            last := pelton.last_run(job);
            IF last.outcome IN ('completed', 'cancelled', 'discarded') THEN
                PERFORM pelton.refuse_node('job ' || job, (SELECT j.metadata FROM pelton.job j WHERE j.id = job));
                IF pelton.run_again(job, last.run, last.attempt) THEN
                    was := last.outcome::text;
                END IF;
                EXIT;
            END IF;
            IF pelton.is_leased(job, last.run + 1) THEN
                RETURN 'running';
            END IF;
            EXIT WHEN pelton.voided(job, last.run + 1) IS DISTINCT FROM 'cancelled';
            PERFORM pelton.refuse_node('job ' || job, (SELECT j.metadata FROM pelton.job j WHERE j.id = job));
            -- It stands cancelled in the line. That is recorded first; the ticket that is still there finds its run ended.
            INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt)
            VALUES (job, last.run + 1, 'cancelled', last.attempt) ON CONFLICT DO NOTHING;
        END LOOP;
    END IF;
    IF was IS NOT NULL THEN
        PERFORM pelton.record_audit(actor, 'job.retry', job::text, jsonb_build_object('state', was),
            jsonb_build_object('state', 'available'));
    END IF;
    RETURN 'available';
END $$;
