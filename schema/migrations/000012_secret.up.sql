-- Secrets of flows: what ${secret.NAME} stands for. docs/flows.md tells how they are used.
-- Values are encrypted with a key that is never in the database. Which project, name and version a row is for is authenticated with its
-- value, so that rows cannot be exchanged.

CREATE TABLE pelton.secret (
    project text COLLATE "C" NOT NULL,  -- '*': all that have none of that name
    name text COLLATE "C" NOT NULL,
    version integer NOT NULL,           -- 1, 2, ...: raised by every new value
    set_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    set_by text NOT NULL,               -- OS user, or API user
    key text NOT NULL,                  -- the id of the key that encrypted it
    nonce bytea NOT NULL,
    value bytea NOT NULL,               -- AES-256-GCM, with its tag
    PRIMARY KEY (project, name)
);
