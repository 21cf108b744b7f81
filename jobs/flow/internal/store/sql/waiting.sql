-- Lists the runs that the next $2 reports from an id on wait for, the longest waiting first, with the last of those ids and their number.
WITH head AS MATERIALIZED (SELECT r.id, r.run_id FROM pelton.flow_reports_from($1, $2) r)
SELECT h.run_id, (SELECT max(a.id) FROM head a), (SELECT count(*) FROM head) FROM head h GROUP BY h.run_id ORDER BY min(h.id)
