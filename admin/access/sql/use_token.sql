-- Notes that a token was used, unless somebody just did.
UPDATE pelton.access_token SET used_at = clock_timestamp()
WHERE id = $1 AND coalesce(used_at < clock_timestamp() - interval '1 minute', true)
