-- Who may do what through the page and the API: users, their roles, tokens and sessions. docs/access.md tells how they are used.
-- Nothing here can be used by who reads it: passwords are argon2id hashes, tokens and sessions SHA-256 of 32 random bytes. Users are
-- disabled, never deleted: the audit names them, and a database that has had one user never lets everybody in again.

CREATE TABLE pelton.access_user (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    disabled_at timestamptz,            -- NULL: may log in
    password_at timestamptz,            -- when the password was set
    name text COLLATE "C" NOT NULL,
    password text,                      -- argon2id, with its parameters and salt; NULL: no login by password
    issuer text COLLATE "C",            -- who vouches for the user by OIDC,
    subject text COLLATE "C",           -- and under which number
    CHECK ((issuer IS NULL) = (subject IS NULL))
);
CREATE UNIQUE INDEX access_user_name ON pelton.access_user (lower(name));
CREATE UNIQUE INDEX access_user_subject ON pelton.access_user (issuer, subject) WHERE subject IS NOT NULL;

-- A user has the highest of the roles that cover a thing's project.
CREATE TABLE pelton.access_role (
    user_id bigint NOT NULL REFERENCES pelton.access_user,
    project text COLLATE "C" NOT NULL,  -- '*': everything, also what belongs to no project
    source text NOT NULL CHECK (source IN ('person', 'oidc')), -- given by a person, or by groups at the last login
    role text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
    PRIMARY KEY (user_id, project, source)
);

CREATE TABLE pelton.access_token (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id bigint NOT NULL REFERENCES pelton.access_user,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    used_at timestamptz,                -- give or take a minute
    revoked_at timestamptz,
    name text NOT NULL,
    project text COLLATE "C" NOT NULL,  -- '*': whatever its user may
    role text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')), -- at most this
    hash bytea NOT NULL UNIQUE
);
CREATE INDEX access_token_user ON pelton.access_token (user_id);

CREATE TABLE pelton.access_session (
    hash bytea PRIMARY KEY,
    user_id bigint NOT NULL REFERENCES pelton.access_user,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- give or take a minute
    expires_at timestamptz NOT NULL,
    address text NOT NULL               -- where it began
) WITH (fillfactor = 70);
CREATE INDEX access_session_user ON pelton.access_session (user_id);
CREATE INDEX access_session_expires ON pelton.access_session (expires_at);

-- Failed logins by name and by address.
CREATE TABLE pelton.access_failure (
    key text COLLATE "C" PRIMARY KEY,   -- 'name:alice', 'address:192.0.2.1'
    count integer NOT NULL,
    at timestamptz NOT NULL,
    free_at timestamptz NOT NULL        -- no try is looked at before
) WITH (fillfactor = 70);
CREATE INDEX access_failure_at ON pelton.access_failure (at);
