-- The memories that are parts of conversations, in their order. Made from the memories (internal/turns), also of those
-- that are there already. It has no hashes: it can be made again.
CREATE TABLE turn (
	memory_id    INTEGER PRIMARY KEY REFERENCES memory (id) ON DELETE CASCADE,
	partition_id INTEGER NOT NULL, -- the memory's
	conversation INTEGER NOT NULL, -- a hash of its name
	at           INTEGER NOT NULL, -- when it was said
	speaker      TEXT NOT NULL     -- empty: not known
) STRICT;
CREATE INDEX turn_order ON turn (partition_id, conversation, at, memory_id);
