-- Stores a new schedule, whose row of schedule_due follows; none if the name is taken.
-- Locks: the unique name, until the end of the transaction.
INSERT INTO pelton.schedule (name, owner, code, spec) VALUES ($1, $2, $3, $4::json)
ON CONFLICT (name) DO NOTHING
RETURNING id, created_at
