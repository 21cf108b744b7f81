-- Changes what one job asked for. Locks: its partition against retention (shared), its row where it waits, its changes.
SELECT pelton.change($1, new_queue => $2, new_priority => $3, new_max_attempts => $4, new_args => $5::text::json,
    new_metadata => $6::text::jsonb, actor => pelton.acting($7))
