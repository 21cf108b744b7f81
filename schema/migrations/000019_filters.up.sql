-- Filters of lists that grow for long find what they ask for by an index, in the order of the list.

CREATE INDEX audit_actor ON pelton.audit (actor, id);
CREATE INDEX audit_action ON pelton.audit (action, id);

CREATE INDEX job_dead_order ON pelton.job_dead (died_at, job_id);
CREATE INDEX job_dead_of_queue ON pelton.job_dead (queue, died_at, job_id); -- also: how many there are of each
CREATE INDEX job_dead_of_kind ON pelton.job_dead (kind, died_at, job_id);
CREATE INDEX job_dead_rare ON pelton.job_dead (reason, died_at, job_id) WHERE reason <> 'exhausted';
DROP INDEX pelton.job_dead_died;
DROP INDEX pelton.job_dead_queue;
