-- Bounds what the statements of this transaction may take, in milliseconds; one at a time, without helpers.
SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', '500', true),
    set_config('idle_in_transaction_session_timeout', '10000', true), set_config('max_parallel_workers_per_gather', '0', true),
    set_config('jit', 'off', true)
