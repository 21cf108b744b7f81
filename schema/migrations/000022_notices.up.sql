-- An erase finds the notices that quote a job among all jobs of some days.

CREATE INDEX job_notice ON pelton.job (id) WHERE kind IN ('flow_notify', 'pelton_alert');
