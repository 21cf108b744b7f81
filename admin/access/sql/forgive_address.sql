-- Takes back the one try that was counted under a key, which has succeeded or was not judged. Others stay.
UPDATE pelton.access_failure SET count = greatest(count - 1, 0), free_at = least(free_at, clock_timestamp()) WHERE key = $1
