-- A ticket that no program can read would hold up whoever claims it, with the jobs of others beside it.

ALTER TABLE pelton.job_ready ADD CONSTRAINT job_ready_whole CHECK (
    cardinality(job_ids) BETWEEN 1 AND 1000 AND array_position(job_ids, NULL) IS NULL
    AND (runs IS NULL OR cardinality(runs) = cardinality(job_ids) AND array_position(runs, NULL) IS NULL)
    AND (attempts IS NULL OR cardinality(attempts) = cardinality(job_ids) AND array_position(attempts, NULL) IS NULL));
