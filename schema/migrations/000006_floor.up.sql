-- Reads of tables with a floor. Functions, because they pin the planner's settings for a single statement, through any pooler:
-- the statistics of the moving tables say nothing about their heads. STABLE: they read with their caller's snapshot, which
-- is the one that also saw the newest row of floor.

-- position_of and position_time turn a time into a position of a floor, microseconds since the epoch, and back, exactly.
CREATE FUNCTION pelton.position_of(t timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (extract(epoch FROM t) * 1000000)::bigint
$$;
CREATE FUNCTION pelton.position_time(p bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT timestamptz 'epoch' + p * interval '1 microsecond'
$$;

-- job_ready_first finds, for each line and priority, the least seq between two positions, both included; NULL: none.
CREATE FUNCTION pelton.job_ready_first(lines text[], priorities smallint[], froms bigint[], uptos bigint[]) RETURNS bigint[]
LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_custom_plan AS $$
    SELECT array_agg((SELECT r.seq FROM pelton.job_ready r
            WHERE r.line = u.line AND r.priority = u.priority AND r.seq BETWEEN u.low AND u.high
            ORDER BY r.seq LIMIT 1) ORDER BY u.n)
    FROM unnest(lines, priorities, froms, uptos) WITH ORDINALITY AS u(line, priority, low, high, n)
$$;
COMMENT ON FUNCTION pelton.job_ready_first IS 'least seq per line and priority between two positions, by index';

-- job_scheduled_first finds the least wake time between two positions, in microseconds since the epoch; NULL: none.
CREATE FUNCTION pelton.job_scheduled_first(froms bigint[], uptos bigint[]) RETURNS bigint[]
LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_custom_plan AS $$
    SELECT array_agg((SELECT pelton.position_of(s.wake) FROM pelton.job_scheduled s
            WHERE s.wake BETWEEN pelton.position_time(u.low) AND pelton.position_time(u.high)
            ORDER BY s.wake LIMIT 1) ORDER BY u.n)
    FROM unnest(froms, uptos) WITH ORDINALITY AS u(low, high, n)
$$;
COMMENT ON FUNCTION pelton.job_scheduled_first IS 'least wake time between two positions, by index';
