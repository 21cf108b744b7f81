-- Stores a version's files.
INSERT INTO pelton.flow_file (version_id, path, hash, bytes, executable)
SELECT $1, u.path, u.hash, u.bytes, u.executable FROM unnest($2::text[], $3::bytea[], $4::bigint[], $5::boolean[])
    AS u(path, hash, bytes, executable)
