-- Reads how long a key must wait, in seconds.
SELECT greatest(0, extract(epoch FROM f.free_at - clock_timestamp()))::float8 FROM pelton.access_failure f WHERE f.key = $1
