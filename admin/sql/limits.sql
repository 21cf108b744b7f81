-- Bounds what the statements of this transaction may take; none is compiled, which takes longer than most of them. $2: no sequential scans.
SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', '500', true),
    set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true),
    CASE WHEN $2 THEN set_config('enable_seqscan', 'off', true) END
