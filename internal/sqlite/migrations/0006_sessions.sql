-- Sign-ins of people in browsers, and the links by which they come to an account. Their values are random and kept as SHA-256 only.

CREATE TABLE session (
	id           INTEGER PRIMARY KEY,
	uid          TEXT NOT NULL UNIQUE,
	user_id      INTEGER NOT NULL REFERENCES user (id) ON DELETE CASCADE,
	hash         BLOB NOT NULL UNIQUE,
	user_agent   TEXT NOT NULL,
	created_at   INTEGER NOT NULL,
	last_used_at INTEGER NOT NULL,
	expires_at   INTEGER NOT NULL -- if it is not used again
) STRICT;
CREATE INDEX session_user ON session (user_id);
CREATE INDEX session_expires ON session (expires_at);

CREATE TABLE invitation (
	id         INTEGER PRIMARY KEY,
	uid        TEXT NOT NULL UNIQUE,
	hash       BLOB NOT NULL UNIQUE,
	purpose    TEXT NOT NULL CHECK (purpose IN ('account', 'setup')),
	role       TEXT NOT NULL CHECK (role IN ('user', 'admin')),
	email      TEXT NOT NULL,
	note       TEXT NOT NULL,
	created_by INTEGER REFERENCES user (id) ON DELETE CASCADE, -- the admin on whose word it counts; NULL: the operator
	created_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	used_at    INTEGER,
	used_by    INTEGER REFERENCES user (id) ON DELETE SET NULL
) STRICT;
CREATE INDEX invitation_created_by ON invitation (created_by);
CREATE INDEX invitation_used_by ON invitation (used_by);
