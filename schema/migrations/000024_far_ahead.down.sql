ALTER TABLE pelton.job_rest DROP CONSTRAINT job_not_far_ahead;
DROP FUNCTION pelton.is_far_ahead(bigint);
