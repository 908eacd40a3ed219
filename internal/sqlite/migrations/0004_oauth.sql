-- The state of an OAuth 2.1 authorization server. Secrets, codes and tokens are random and kept as SHA-256 only.

CREATE TABLE oauth_client (
	id            INTEGER PRIMARY KEY,
	client_id     TEXT NOT NULL UNIQUE,
	kind          TEXT NOT NULL CHECK (kind IN ('admin', 'registered', 'document')), -- made by a user, by RFC 7591, by its own metadata document
	owner_id      INTEGER REFERENCES user (id) ON DELETE CASCADE, -- of kind admin
	name          TEXT NOT NULL,
	auth_method   TEXT NOT NULL CHECK (auth_method IN ('none', 'client_secret_basic', 'client_secret_post')),
	secret_hash   BLOB,          -- NULL with none
	redirect_uris TEXT NOT NULL, -- JSON list
	metadata      TEXT NOT NULL, -- JSON object: what else it registered
	created_at    INTEGER NOT NULL,
	updated_at    INTEGER NOT NULL,
	expires_at    INTEGER,       -- of kind document: when it is to be fetched again
	used_at       INTEGER,       -- when a user first consented to it; NULL: nobody has yet
	disabled_at   INTEGER        -- for good
) STRICT;
CREATE INDEX oauth_client_owner ON oauth_client (owner_id);
CREATE INDEX oauth_client_kind ON oauth_client (kind, updated_at);

-- What a user allowed a client. Each consent is a grant of its own; its codes and tokens live and end with it.
CREATE TABLE oauth_grant (
	id           INTEGER PRIMARY KEY,
	uid          TEXT NOT NULL UNIQUE,
	client_id    INTEGER NOT NULL REFERENCES oauth_client (id) ON DELETE CASCADE,
	user_id      INTEGER NOT NULL REFERENCES user (id) ON DELETE CASCADE,
	scopes       TEXT NOT NULL, -- JSON list
	projects     TEXT,          -- JSON list of references; NULL: all
	resource     TEXT NOT NULL, -- RFC 8707, canonical; '': none was named
	created_at   INTEGER NOT NULL,
	last_used_at INTEGER,       -- when tokens were last given out; NULL: its code has not come back yet
	revoked_at   INTEGER
) STRICT;
CREATE INDEX oauth_grant_user ON oauth_grant (user_id);
CREATE INDEX oauth_grant_client ON oauth_grant (client_id);

CREATE TABLE oauth_code (
	hash         BLOB PRIMARY KEY,
	grant_id     INTEGER NOT NULL REFERENCES oauth_grant (id) ON DELETE CASCADE,
	redirect_uri TEXT NOT NULL,
	challenge    TEXT NOT NULL, -- RFC 7636, S256; '': none was sent
	created_at   INTEGER NOT NULL,
	expires_at   INTEGER NOT NULL,
	used_at      INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_code_grant ON oauth_code (grant_id);
CREATE INDEX oauth_code_expires ON oauth_code (expires_at);

-- Refresh tokens. Access tokens are JWTs and not stored; they are checked against their grant.
CREATE TABLE oauth_token (
	hash       BLOB PRIMARY KEY,
	grant_id   INTEGER NOT NULL REFERENCES oauth_grant (id) ON DELETE CASCADE,
	created_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	rotated_at INTEGER -- when another one took its place
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_token_grant ON oauth_token (grant_id);
CREATE INDEX oauth_token_expires ON oauth_token (expires_at);

CREATE TABLE signing_key (
	id          INTEGER PRIMARY KEY,
	kid         TEXT NOT NULL UNIQUE,
	algorithm   TEXT NOT NULL,
	private_key BLOB NOT NULL, -- of Ed25519: the seed
	created_at  INTEGER NOT NULL,
	retired_at  INTEGER -- signs no more, and is kept until what it signed has expired
) STRICT;
CREATE UNIQUE INDEX signing_key_current ON signing_key (algorithm) WHERE retired_at IS NULL;
