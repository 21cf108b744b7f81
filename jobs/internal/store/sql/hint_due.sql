-- Tells movers of a job due soon, when the transaction commits. The colon keeps it apart from queues' names.
SELECT pg_notify('pelton_wake', 'due:')
