-- A new incarnation of an executor.
INSERT INTO pelton.executor (name, host, pid, slots, queues, kinds, labels) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id
