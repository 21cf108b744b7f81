-- How the scheduler's duties get on.
SELECT d.duty, d.state, d.done_at, d.done_by, d.late, d.failing_since, d.failed_by, d.error FROM pelton.duty_report d ORDER BY d.duty
