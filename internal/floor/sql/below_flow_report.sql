-- Reads the first row of each key below its mark, and with the same snapshot the newest row of floor and the least
-- position that its passed writers explain. Takes no locks. Visits every dead index entry below the marks.
SELECT coalesce(f.no, 0), (SELECT min((p ->> 'look_from')::bigint) FROM jsonb_array_elements(f.passed) AS p),
    pelton.flow_report_first(array_fill(0::bigint, ARRAY[cardinality($1::bigint[])]), ARRAY(SELECT u.mark - 1 FROM unnest($1) WITH ORDINALITY AS u(mark, n) ORDER BY u.n))
FROM (VALUES (1)) AS one LEFT JOIN LATERAL (
    SELECT n.no, n.passed FROM pelton.floor n WHERE n.relation = 'flow_report' ORDER BY n.no DESC LIMIT 1
) f ON true
