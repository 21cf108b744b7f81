-- Deletes about $1 nodes of runs that are gone, each run's in order from where the last piece ended, so that none reads through those deleted
-- before; and forgets the runs of which it finds none any more. Returns how many runs it was at. Skips those that somebody else is at.
-- By place, so that the runs' nodes are found by the key, whatever the statistics say.
WITH runs AS MATERIALIZED (
    SELECT s.run_id, s.next FROM pelton.flow_swept s ORDER BY s.run_id LIMIT 50 FOR UPDATE SKIP LOCKED
), share AS MATERIALIZED (
    SELECT greatest(1, $1::integer / greatest(1, count(*)))::integer AS nodes FROM runs
), piece AS MATERIALIZED (
    SELECT r.run_id, n.tid, n.no FROM runs r CROSS JOIN LATERAL (
        SELECT f.ctid AS tid, f.no FROM pelton.flow_node f
        WHERE f.run_id = r.run_id AND f.no >= r.next ORDER BY f.no LIMIT (SELECT nodes FROM share)
    ) n
), gone AS (
    DELETE FROM pelton.flow_node WHERE ctid = ANY (ARRAY(SELECT tid FROM piece))
), moved AS (
    UPDATE pelton.flow_swept s SET next = p.last + 1 FROM (SELECT run_id, max(no) AS last FROM piece GROUP BY run_id) p
    WHERE s.run_id = p.run_id
), forgotten AS (
    DELETE FROM pelton.flow_swept s WHERE s.run_id IN (SELECT r.run_id FROM runs r WHERE r.run_id NOT IN (SELECT p.run_id FROM piece p))
)
SELECT count(*) FROM runs
