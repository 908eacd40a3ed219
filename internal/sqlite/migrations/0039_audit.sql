-- The log of administration: each entry has a hash of itself and of the one before it, so that no change goes unseen.
-- Entries hold ids, words of fixed lists, numbers and hashes: nothing that a person has written.
CREATE TABLE audit (
	id            INTEGER PRIMARY KEY, -- its place in the chain, from 1, without gaps
	at            INTEGER NOT NULL,
	namespace     TEXT NOT NULL,
	actor         TEXT NOT NULL, -- users.uid of who did it; '': the operator
	via           TEXT NOT NULL, -- the way: 'server', 'command', 'upkeep'; '': a program that has the store open
	credential    TEXT NOT NULL, -- as in activity
	credential_id TEXT NOT NULL,
	action        TEXT NOT NULL,
	kind          TEXT NOT NULL, -- of the object
	object        TEXT NOT NULL, -- its id, or a hash of it if people choose it
	details       TEXT NOT NULL, -- a JSON object
	hash          BLOB NOT NULL
) STRICT;
