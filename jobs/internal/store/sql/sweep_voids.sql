-- Removes old voids that nobody's ticket asks for any more. Reads the line whole; waits for nobody but an operator on the same job.
SELECT pelton.sweep_voids($1::bigint * interval '1 microsecond', $2)
