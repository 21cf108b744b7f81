-- Deletes reports that were applied.
DELETE FROM pelton.flow_report WHERE id = ANY ($1::bigint[])
