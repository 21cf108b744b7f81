-- What fires, by rule: how many subjects. The table has a row for each that is bad. No locks.
SELECT rule, count(*)::integer FROM pelton.alert_state WHERE firing_since IS NOT NULL GROUP BY rule ORDER BY rule
