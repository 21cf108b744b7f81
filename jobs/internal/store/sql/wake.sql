-- Hints at work in these lines if somebody sleeps there.
SELECT pelton.wake($1)
