CREATE INDEX job_dead_died ON pelton.job_dead (died_at);
CREATE INDEX job_dead_queue ON pelton.job_dead (queue); -- how many there are of each
DROP INDEX pelton.job_dead_rare;
DROP INDEX pelton.job_dead_of_kind;
DROP INDEX pelton.job_dead_of_queue;
DROP INDEX pelton.job_dead_order;
DROP INDEX pelton.audit_action;
DROP INDEX pelton.audit_actor;
