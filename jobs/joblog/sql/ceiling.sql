-- An id above those that logs get within the next two hours. Given as a parameter to what reads logs, it spares their plans the partitions made ahead,
-- which take most of their time; what depends on now() is known only when a plan starts. Reads no table.
SELECT pelton.id_at(clock_timestamp() + interval '2 hours')
