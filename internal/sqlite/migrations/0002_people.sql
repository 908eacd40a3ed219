-- People who sign in, what they sign in with, and what programs act for them with. A user of an embedding program has a
-- row in user, too, with all of this empty.

ALTER TABLE user ADD COLUMN name TEXT;        -- to sign in with, as written; NULL: no account
ALTER TABLE user ADD COLUMN name_key TEXT;    -- the same folded, for comparing
ALTER TABLE user ADD COLUMN email TEXT;
ALTER TABLE user ADD COLUMN role TEXT NOT NULL DEFAULT 'user' CHECK (role IN ('user', 'admin'));
ALTER TABLE user ADD COLUMN password TEXT;    -- argon2id, in PHC string format; NULL: none
ALTER TABLE user ADD COLUMN disabled_at INTEGER;
ALTER TABLE user ADD COLUMN updated_at INTEGER;
CREATE UNIQUE INDEX user_name ON user (name_key) WHERE name_key IS NOT NULL;

-- Who somebody is at an identity provider (OpenID Connect Core 1.0, section 2: iss and sub).
CREATE TABLE external_identity (
	issuer     TEXT NOT NULL,
	subject    TEXT NOT NULL,
	user_id    INTEGER NOT NULL REFERENCES user (id) ON DELETE CASCADE,
	email      TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX external_identity_user ON external_identity (user_id);

CREATE TABLE preference (
	user_id    INTEGER PRIMARY KEY REFERENCES user (id) ON DELETE CASCADE,
	value      TEXT NOT NULL, -- JSON object
	updated_at INTEGER NOT NULL
) STRICT;

-- MCP tokens.
CREATE TABLE token (
	id           INTEGER PRIMARY KEY,
	uid          TEXT NOT NULL UNIQUE,
	user_id      INTEGER NOT NULL REFERENCES user (id) ON DELETE CASCADE,
	name         TEXT NOT NULL,
	hash         BLOB NOT NULL UNIQUE, -- SHA-256 of the token
	prefix       TEXT NOT NULL,        -- its first characters, to tell it from others
	scopes       TEXT NOT NULL,        -- JSON list
	projects     TEXT,                 -- JSON list of references; NULL: all
	created_at   INTEGER NOT NULL,
	expires_at   INTEGER,
	last_used_at INTEGER,
	revoked_at   INTEGER
) STRICT;
CREATE INDEX token_user ON token (user_id);
