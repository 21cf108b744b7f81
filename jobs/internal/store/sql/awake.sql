-- Takes a sleeper off these lines, so that nobody sends hints that are not needed.
DELETE FROM pelton.job_sleeper WHERE executor = $1 AND line = ANY ($2::text[])
