-- Appends jobs in bulk. Locks: ROW EXCLUSIVE.
COPY pelton.job (id, created_at, scheduled_at, priority, max_attempts, kind, queue, args, metadata, tags) FROM STDIN BINARY
