-- Makes a user. No row: the name is taken, in whatever case.
INSERT INTO pelton.access_user (name, password, password_at, issuer, subject)
VALUES ($1, $2::text, CASE WHEN $2::text IS NOT NULL THEN clock_timestamp() END, $3::text, $4::text)
ON CONFLICT DO NOTHING RETURNING id
