-- Deletes contents that were locked and that no version names still.
DELETE FROM pelton.flow_content c WHERE c.hash = ANY ($1::bytea[]) AND NOT EXISTS (SELECT FROM pelton.flow_file f WHERE f.hash = c.hash)
