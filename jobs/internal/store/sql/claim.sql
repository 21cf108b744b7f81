-- Hands out runs: locks the first tickets of the given lines (each a line, a priority and its low-water mark, in the order of
-- the arrays), deletes a prefix of them that holds at most $8 jobs, puts the rest of the last one back under its seq, and
-- leases what it took, a lease a ticket. Everything is driven from the rows really deleted.
-- Locks: row locks on the head tickets, SKIP LOCKED; nobody waits. An entry with an age counts only if its first ticket is that old.
WITH head AS MATERIALIZED (
    SELECT p.o, r.tid, r.seq, r.size
    FROM unnest($3::text[], $4::smallint[], $5::bigint[], $6::float8[])
        WITH ORDINALITY AS p(line, priority, mark, age, o)
    CROSS JOIN LATERAL (
        SELECT t.ctid AS tid, t.seq, cardinality(t.job_ids) AS size FROM pelton.job_ready t
        WHERE t.line = p.line AND t.priority = p.priority AND t.seq >= p.mark
        ORDER BY t.seq LIMIT $7 FOR UPDATE SKIP LOCKED) r
    WHERE p.age = 0 OR clock_timestamp() - make_interval(secs => p.age) > (
        SELECT f.entered_at FROM pelton.job_ready f
        WHERE f.line = p.line AND f.priority = p.priority AND f.seq >= p.mark ORDER BY f.seq LIMIT 1)
    LIMIT $7
), take AS (
    SELECT tid, o, least(size, $8 - earlier) AS taken, row_number() OVER (ORDER BY o, seq, tid) AS nth
    FROM (SELECT *, sum(size) OVER (ORDER BY o, seq, tid) - size AS earlier FROM head) h
    WHERE earlier < $8
), gone AS (
    DELETE FROM pelton.job_ready WHERE ctid = ANY (ARRAY(SELECT tid FROM take))
    RETURNING ctid AS tid, seq, entered_at, priority, line, job_ids, runs, attempts
), got AS MATERIALIZED (
    SELECT g.*, t.taken::int AS taken, t.nth, $2::bigint + t.nth - 1 AS no FROM gone g JOIN take t USING (tid)
), rest AS (
    INSERT INTO pelton.job_ready (seq, entered_at, priority, line, job_ids, runs, attempts)
    SELECT seq, entered_at, priority, line, job_ids[taken + 1:], runs[taken + 1:], attempts[taken + 1:]
    FROM got WHERE taken < cardinality(job_ids)
), leased AS (
    INSERT INTO pelton.job_lease (executor, no, job_ids, runs, attempts)
    SELECT $1, no, job_ids[:taken], runs[:taken], attempts[:taken] FROM got
)
SELECT no, clock_timestamp(), entered_at, line, job_ids[:taken], runs[:taken], attempts[:taken] FROM got ORDER BY nth
