-- Shares of runs that failed, by queue, or by kind if $7. Of the newest $2 attempts of jobs made since $1 (an id, which prunes partitions), by
-- the primary key backwards, so however many there are; of those that ended since $3. $4 queues, $5 kinds, empty: all but queue $6.
-- At least $8 runs, beyond a share of $9. Each attempt's job is looked up by its id. If there were more attempts than are read, shares of queues are
-- of the tallies of whole minutes, where there are any: those are late by a minute, but know of all runs. Locks nothing but ACCESS SHARE.
WITH newest AS MATERIALIZED (
    SELECT a.job_id, a.outcome, a.ended_at FROM pelton.job_attempt a WHERE a.job_id >= $1::bigint ORDER BY a.job_id DESC LIMIT $2
), ended AS MATERIALIZED (
    SELECT n.job_id, (n.outcome <> 'completed')::integer AS failed FROM newest n
    WHERE n.ended_at >= $3 AND n.outcome IN ('completed', 'errored', 'discarded', 'lost')
), named AS MATERIALIZED (
    SELECT j.queue, j.kind, e.failed FROM ended e
    CROSS JOIN LATERAL (SELECT q.queue, q.kind FROM pelton.job q WHERE q.id = e.job_id AND q.id >= $1::bigint LIMIT 1) j
    WHERE CASE WHEN cardinality($4::text[]) > 0 THEN j.queue = ANY ($4::text[]) ELSE j.queue <> $6 END
        AND (cardinality($5::text[]) = 0 OR j.kind = ANY ($5::text[]))
), sampled AS (
    SELECT CASE WHEN $7 THEN n.kind ELSE n.queue END AS subject, count(*) AS runs, sum(n.failed) AS failed FROM named n GROUP BY 1
), tallied AS MATERIALIZED (
    SELECT t.queue AS subject, sum(t.completed + t.failed + t.discarded) AS runs, sum(t.failed + t.discarded) AS failed FROM pelton.queue_tally t
    WHERE (SELECT count(*) >= $2 FROM newest) AND NOT $7 AND cardinality($5::text[]) = 0 AND t.minute >= date_trunc('minute', $3::timestamptz)
        AND CASE WHEN cardinality($4::text[]) > 0 THEN t.queue = ANY ($4::text[]) ELSE t.queue <> $6 END
    GROUP BY 1
), shares AS (
    SELECT x.subject, x.runs, x.failed::float8 / x.runs AS share FROM tallied x WHERE x.runs > 0
    UNION ALL
    SELECT s.subject, s.runs, s.failed::float8 / s.runs FROM sampled s WHERE NOT EXISTS (SELECT FROM tallied x WHERE x.subject = s.subject AND x.runs > 0)
)
SELECT s.subject, s.share, s.runs || CASE WHEN s.runs = 1 THEN ' run' ELSE ' runs' END FROM shares s
WHERE s.runs >= $8 AND s.share > $9 ORDER BY s.share DESC, s.subject LIMIT $10
