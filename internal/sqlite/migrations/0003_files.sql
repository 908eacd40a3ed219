-- Files, in pieces that are read and written one after the other.

CREATE TABLE file (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	uid         TEXT NOT NULL UNIQUE,
	owner_id    INTEGER NOT NULL REFERENCES user (id),
	memory_id   INTEGER REFERENCES memory (id) ON DELETE SET NULL,
	project_id  INTEGER REFERENCES project (id), -- where it lies while it is linked to no memory
	state       TEXT NOT NULL CHECK (state IN ('arriving', 'stored', 'leaving')), -- only stored ones are ever seen
	filename    TEXT NOT NULL,
	mime_type   TEXT NOT NULL,
	size        INTEGER NOT NULL, -- bytes; of an arriving one: those announced, or those that are here if they are more
	sha256      BLOB NOT NULL,    -- of the whole file; empty while it arrives
	description TEXT NOT NULL,
	category    TEXT NOT NULL,
	created_at  INTEGER NOT NULL,
	updated_at  INTEGER NOT NULL  -- of an arriving one: when its last piece came
) STRICT;
CREATE INDEX file_owner ON file (owner_id, state, size); -- all that a quota asks for
CREATE INDEX file_memory ON file (memory_id);
CREATE INDEX file_project ON file (project_id);
CREATE INDEX file_state ON file (state) WHERE state <> 'stored';

CREATE TABLE file_tag (
	file_id  INTEGER NOT NULL REFERENCES file (id) ON DELETE CASCADE,
	tag      TEXT NOT NULL,
	position INTEGER NOT NULL,
	PRIMARY KEY (file_id, tag)
) STRICT, WITHOUT ROWID;

-- 256 KiB each, the last one shorter. The id is file.id << 24 | n, so that the pieces of a file lie side by side.
CREATE TABLE file_chunk (
	id     INTEGER PRIMARY KEY,
	sha256 BLOB NOT NULL,
	data   BLOB NOT NULL
) STRICT;

-- A file whose memory is deleted stays in the memory's project.
CREATE TRIGGER file_unlinked BEFORE DELETE ON memory BEGIN
	UPDATE file SET memory_id = NULL, project_id = (SELECT project_id FROM partition WHERE id = OLD.partition_id)
		WHERE memory_id = OLD.id;
END;

-- The same where the partition is deleted, since it is gone before its memories are.
CREATE TRIGGER file_unlinked_all BEFORE DELETE ON partition BEGIN
	UPDATE file SET memory_id = NULL, project_id = OLD.project_id
		WHERE memory_id IN (SELECT id FROM memory WHERE partition_id = OLD.id);
END;
