-- Counts a try under a key as failed, until it is known better. No row: not before the key's time. Counts are forgotten after a
-- while ($2); beyond those that are free ($3) each doubles the time until the next, from a second up to a most ($4).
INSERT INTO pelton.access_failure AS f (key, count, at, free_at) VALUES ($1, 1, clock_timestamp(), clock_timestamp())
ON CONFLICT (key) DO UPDATE SET
    count = CASE WHEN f.at < clock_timestamp() - $2::interval THEN 1 ELSE f.count + 1 END,
    at = clock_timestamp(),
    free_at = clock_timestamp() + CASE WHEN f.at < clock_timestamp() - $2::interval OR f.count + 1 < $3::integer THEN interval '0'
        ELSE least($4::interval, interval '1 second' * 2 ^ least(f.count + 1 - $3::integer, 20)) END
WHERE f.free_at <= clock_timestamp()
RETURNING f.count
