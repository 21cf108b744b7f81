DROP INDEX pelton.job_notice;
