-- Stores states of a rule. Only for the holder of alert_turn's lock; rows that are as they were are not written.
INSERT INTO pelton.alert_state AS s (rule, subject, bad_since, firing_since, good_since, noticed_at, notices, value, text, told)
SELECT $1, x.subject, x.bad_since, x.firing_since, x.good_since, x.noticed_at, x.notices, x.value, x.text, coalesce(x.told, '{}')
FROM jsonb_to_recordset($2::jsonb) AS x (subject text, bad_since timestamptz, firing_since timestamptz, good_since timestamptz,
    noticed_at timestamptz, notices integer, value double precision, text text, told text[])
ON CONFLICT (rule, subject) DO UPDATE SET firing_since = excluded.firing_since, good_since = excluded.good_since,
    noticed_at = excluded.noticed_at, notices = excluded.notices, value = excluded.value, text = excluded.text, told = excluded.told
WHERE (s.firing_since, s.good_since, s.noticed_at, s.notices, s.value, s.text, s.told)
    IS DISTINCT FROM (excluded.firing_since, excluded.good_since, excluded.noticed_at, excluded.notices, excluded.value, excluded.text, excluded.told)
