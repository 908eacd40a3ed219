-- The keys of users, in a file beside the store: see internal/sealing/keyring.
CREATE TABLE ring (
	one    INTEGER PRIMARY KEY CHECK (one = 1),
	header BLOB NOT NULL, -- with the ring's key, wrapped by the master key
	store  INTEGER        -- random number of the one store whose keys these are; NULL: of none yet
) STRICT;
CREATE TABLE user_key (
	id         BLOB PRIMARY KEY, -- in front of what is sealed under the key
	owner      BLOB UNIQUE,      -- whose: a hash under the ring's key; NULL: erased
	wrapped    BLOB,             -- the key, under the ring's key; NULL: erased
	made_at    INTEGER NOT NULL,
	leaving_at INTEGER,          -- when the deletion of its user began
	erased_at  INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX user_key_leaving ON user_key (leaving_at) WHERE leaving_at IS NOT NULL;
