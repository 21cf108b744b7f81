-- How many schedules had a tick that failed or was missed within a day, of the last 1,000 such ticks: by schedule_tick_bad. No locks.
SELECT count(DISTINCT t.schedule_id) FROM (
    SELECT k.schedule_id FROM pelton.schedule_tick k WHERE (k.outcome = 'failed' OR k.reason = 'missed') AND k.decided_at > now() - interval '1 day'
    ORDER BY k.decided_at DESC LIMIT 1000) t
