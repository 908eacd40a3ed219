-- The log of administration: each entry has a hash of itself and of the one before it, so that no change goes unseen.
-- Entries hold ids, words of fixed lists, numbers and hashes: nothing that a person has written.
CREATE TABLE audit (
	id            bigint PRIMARY KEY, -- its place in the chain, from 1, without gaps
	at            bigint NOT NULL,
	namespace     text COLLATE "C" NOT NULL,
	actor         text COLLATE "C" NOT NULL, -- users.uid of who did it; '': the operator
	via           text COLLATE "C" NOT NULL, -- the way: 'server', 'command', 'upkeep'; '': a program that has the store open
	credential    text COLLATE "C" NOT NULL, -- as in activity
	credential_id text COLLATE "C" NOT NULL,
	action        text COLLATE "C" NOT NULL,
	kind          text COLLATE "C" NOT NULL, -- of the object
	object        text COLLATE "C" NOT NULL, -- its id, or a hash of it if people choose it
	details       text COLLATE "C" NOT NULL, -- a JSON object
	hash          bytea NOT NULL
);
