-- Makes a new job of a dead letter. Locks the letter.
SELECT pelton.redrive($1, pelton.acting($2))
