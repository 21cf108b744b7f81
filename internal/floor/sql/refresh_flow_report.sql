-- Reads the newest row of floor and what the rows after $1 say, and with the same snapshot the first row of each key
-- between its mark (lowered where a row says so) and what is settled. Takes no locks.
WITH newest AS MATERIALIZED (
    SELECT f.no, f.settled FROM pelton.floor f WHERE f.relation = 'flow_report' ORDER BY f.no DESC LIMIT 1
), fresh AS MATERIALIZED (
    SELECT min(f.follows) AS follows, min(f.look_from) AS look_from FROM pelton.floor f WHERE f.relation = 'flow_report' AND f.no > $1
), low AS MATERIALIZED (
    SELECT array_agg(least(u.mark, fresh.look_from) ORDER BY u.n) AS froms, array_agg(newest.settled ORDER BY u.n) AS uptos
    FROM newest, fresh, unnest($2::bigint[]) WITH ORDINALITY AS u(mark, n)
)
SELECT pg_postmaster_start_time(), newest.no, newest.settled, coalesce(fresh.follows, $1),
    pelton.flow_report_first(low.froms, low.uptos)
FROM newest, fresh, low
