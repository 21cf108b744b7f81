-- Writes what became of ticks. Locks: none but its rows' keys, which nobody else writes while the schedules are locked.
INSERT INTO pelton.schedule_tick (schedule_id, tick, at, decided_at, job_id, run_id, backfill_id, n, source, outcome, reason, note, wall, actor)
SELECT u.schedule_id, pelton.tick_key(u.at), u.at, clock_timestamp(), u.job_id, u.run_id, u.backfill_id, u.n, u.source, u.outcome,
    u.reason, u.note, u.wall, u.actor
FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::bigint[], $5::bigint[], $6::integer[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::timestamp[], $12::text[])
    AS u(schedule_id, at, job_id, run_id, backfill_id, n, source, outcome, reason, note, wall, actor)
