-- Reads the seconds until the next timer is due; -1: none is set.
SELECT coalesce(greatest(0, extract(epoch FROM min(at) - clock_timestamp()))::float8, -1) FROM pelton.flow_timer
