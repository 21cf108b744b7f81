-- Moves a further run that a job has entered since it was changed. Locks: nothing but its void.
SELECT pelton.move_again($1, $2)
