-- Forgets the failures of a name that has logged in.
DELETE FROM pelton.access_failure WHERE key = $1
