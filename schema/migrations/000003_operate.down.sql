DROP FUNCTION pelton.discard, pelton.redrive, pelton.bury, pelton.json_contains;
DROP FUNCTION pelton.job_rows, pelton.resume_queue, pelton.pause_queue, pelton.sweep_voids, pelton.honour_in_line, pelton.cancel_waiting, pelton.drop_voids,
    pelton.honour_voids, pelton.delete_job, pelton.remove_job, pelton.move_again, pelton.change, pelton.retry, pelton.run_again, pelton.refuse_node,
    pelton.raise_max_attempts, pelton.erase_job, pelton.refuse_erased, pelton.erase_lock, pelton.retake_key, pelton.cancel, pelton.enter_line, pelton.last_run, pelton.leave_place,
    pelton.free_keys, pelton.voided, pelton.is_leased, pelton.check_queue,
    pelton.hint, pelton.record_audit;
