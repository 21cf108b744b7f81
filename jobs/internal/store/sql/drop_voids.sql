-- Removes voids and unique keys of runs that have ended. Waits for nobody: held rows are skipped.
SELECT pelton.drop_voids($1, $2, $3)
