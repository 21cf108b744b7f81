-- Removes a dead letter. Locks it.
SELECT pelton.discard($1, pelton.acting($2))
