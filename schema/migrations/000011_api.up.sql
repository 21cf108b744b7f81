-- Answers to requests of the JSON API that came with an Idempotency-Key, so that a second one with the same key does nothing and gets the
-- same answer. A row is inserted first in the transaction of what the request does, so a request that comes meanwhile waits for it, and
-- gets its answer in the same transaction. The keeper of partitions deletes rows of a day ago.

CREATE TABLE pelton.api_request (
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    hash bytea NOT NULL,                -- SHA-256 of what was asked
    answer text,                        -- JSON; never NULL once committed
    PRIMARY KEY (actor, key)
) WITH (fillfactor = 80);
CREATE INDEX api_request_at ON pelton.api_request (at);
