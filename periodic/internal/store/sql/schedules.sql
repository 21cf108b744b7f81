-- Schedules by name, each with where it is and its last tick; NULL parameters filter nothing. $1 is where names begin, $2 the name
-- to go on after, $9 a single name, $10 projects of flows. Only of the $8 found is the last tick looked up, whatever the plan: of each in
-- every partition of ticks.
-- Locks: none.
SELECT s.id, s.name, s.owner, s.code, s.version, s.created_at, s.changed_at, s.paused_at, s.paused_why, s.paused_by, s.trigger_cron,
    s.spec::text,
    s.next_at, s.waiting, s.live_job, s.live_run, s.live_since, s.failures::int,
    t.at, t.n, t.source, t.outcome, t.reason, t.note, t.wall, t.job_id, t.run_id, t.backfill_id, t.decided_at, t.actor
FROM (
    SELECT s.*, d.next_at, d.waiting, d.live_job, d.live_run, d.live_since, d.failures
    FROM pelton.schedule s
    JOIN pelton.schedule_due d ON d.schedule_id = s.id
    WHERE ($1::text IS NULL OR starts_with(s.name, $1)) AND ($2::text IS NULL OR s.name > $2)
        AND ($3::text IS NULL OR s.owner = $3)
        AND ($4::text IS NULL OR s.spec #>> '{job,kind}' = $4)
        AND ($5::text IS NULL OR s.spec #>> '{flow,project}' = $5)
        AND ($6::text IS NULL OR s.spec #>> '{flow,flow}' = $6)
        AND ($7::boolean IS NULL OR (s.paused_at IS NOT NULL) = $7)
        AND ($9::text IS NULL OR s.name = $9)
        AND ($10::text[] IS NULL OR s.spec #>> '{flow,project}' = ANY ($10))
    ORDER BY s.name LIMIT $8
) s
LEFT JOIN LATERAL (
    SELECT * FROM pelton.schedule_tick k WHERE k.schedule_id = s.id ORDER BY k.tick DESC, k.n DESC LIMIT 1
) t ON true
ORDER BY s.name
