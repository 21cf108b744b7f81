-- Removes jobs from the copy, to be copied anew.
DELETE FROM {next} WHERE id = ANY ($1)
