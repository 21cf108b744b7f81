-- Lists a version's files.
SELECT path, hash, bytes, executable FROM pelton.flow_file WHERE version_id = $1 ORDER BY path
