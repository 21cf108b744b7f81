DROP VIEW pelton.growth, pelton.partition_size, pelton.job_history, pelton.audit_trail, pelton.dead_letter,
    pelton.queue_report, pelton.waiting, pelton.executor_report, pelton.job_report, pelton.run_report,
    pelton.running;
DROP FUNCTION pelton.lost_jobs(interval);
DROP VIEW pelton.job_state;
