-- Bounds what the statements of this transaction may take.
SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', '500', true),
    set_config('max_parallel_workers_per_gather', '0', true)
