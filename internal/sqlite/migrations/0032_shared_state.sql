-- What the processes on one database agree on for a while: who embeds, what was used up.
CREATE TABLE shared_state (
	key TEXT PRIMARY KEY,
	value BLOB NOT NULL,
	expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX shared_state_expires ON shared_state (expires_at);
