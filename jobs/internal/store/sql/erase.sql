-- Blanks what an ended job held, wherever it is. Locks its partition, and rows of all that it blanks.
SELECT pelton.erase_job($1, pelton.acting($2))
