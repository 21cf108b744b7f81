DROP TRIGGER job_scheduled_wake ON pelton.job_scheduled;
DROP FUNCTION pelton.wake_now();
ALTER TABLE pelton.job_scheduled DROP CONSTRAINT job_scheduled_sound;
ALTER TABLE pelton.job_ready DROP CONSTRAINT job_ready_sound;
ALTER TABLE pelton.job DROP CONSTRAINT job_sound;
