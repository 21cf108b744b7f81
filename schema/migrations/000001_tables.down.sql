DROP TABLE IF EXISTS pelton.audit, pelton.queue, pelton.job_dead, pelton.floor, pelton.job_sleeper, pelton.job_lease,
    pelton.executor, pelton.job_unique, pelton.job_change, pelton.job_void, pelton.job_parked, pelton.job_scheduled,
    pelton.job_ready, pelton.job_log, pelton.job_attempt, pelton.job CASCADE;
DROP SEQUENCE IF EXISTS pelton.job_id_seq, pelton.job_log_id_seq, pelton.job_ready_seq;
DROP TYPE IF EXISTS pelton.outcome;
