-- Bounds what the statements of an evaluation may take. A process that is stopped in one, or whose host is gone, keeps its turn for ten
-- seconds: then others have it.
SELECT set_config('statement_timeout', '5000', true), set_config('lock_timeout', '2000', true),
    set_config('idle_in_transaction_session_timeout', '10000', true), set_config('max_parallel_workers_per_gather', '0', true),
    set_config('jit', 'off', true)
