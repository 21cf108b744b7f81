-- Copies jobs whole into the dead letters, in the transaction that recorded their last run.
SELECT pelton.bury($1, $2)
