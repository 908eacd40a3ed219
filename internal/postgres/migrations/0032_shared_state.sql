-- What the processes on one database agree on for a while: who embeds, what was used up.
CREATE TABLE shared_state (
	key text COLLATE "C" PRIMARY KEY,
	value bytea NOT NULL,
	expires_at bigint NOT NULL
);
CREATE INDEX shared_state_expires ON shared_state (expires_at);
