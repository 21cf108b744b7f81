-- Deletes reports that were applied, by their place: nobody changes one, and no plan reads through the dead ones.
DELETE FROM pelton.flow_report WHERE ctid = ANY ($1::text[]::tid[])
