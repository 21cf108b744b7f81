-- Sends hints whoever sleeps: for rare events.
SELECT pg_notify('pelton_wake', h) FROM unnest($1::text[]) AS h
