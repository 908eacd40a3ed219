-- What was deleted and can still be restored. None of it is in the tables that answer callers, so no condition there can let it through:
-- memories lie here as JSON, files keep their pieces under a row in a state of its own.

CREATE TABLE trash (
	id               INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order of deletion
	uid              TEXT NOT NULL UNIQUE, -- of a memory or a file: its own id
	kind             TEXT NOT NULL CHECK (kind IN ('memory', 'file', 'project', 'collection')),
	item             TEXT NOT NULL, -- id of the memory, file or project; name of the collection
	title            TEXT NOT NULL, -- to recognize it by, bounded
	owner_id         INTEGER NOT NULL REFERENCES user (id), -- the owner of the place where it lay
	collection_id    INTEGER REFERENCES collection (id) ON DELETE SET NULL, -- of kind collection: the one that it goes back into; NULL: it is to be made
	project_id       INTEGER REFERENCES project (id) ON DELETE SET NULL, -- where it lay, or of kind project, as with collections
	collection       TEXT NOT NULL, -- name of the collection; '': none
	project          TEXT NOT NULL, -- id of the project; '': none
	project_name     TEXT NOT NULL,
	data             TEXT NOT NULL, -- JSON: what the project or collection was
	memories         INTEGER NOT NULL, -- that it holds
	size             INTEGER NOT NULL, -- bytes
	deleted_by       INTEGER NOT NULL REFERENCES user (id),
	deleted_through  TEXT NOT NULL,
	deleted_at       INTEGER NOT NULL,
	restorable_until INTEGER NOT NULL -- from then on it is erased, in as many transactions as that takes
) STRICT;
CREATE INDEX trash_owner ON trash (owner_id, restorable_until);
CREATE INDEX trash_project ON trash (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX trash_collection ON trash (collection_id) WHERE collection_id IS NOT NULL;
CREATE INDEX trash_expires ON trash (restorable_until);

-- The parts of an entry: a memory is one row for its present state and one for each former state.
CREATE TABLE trash_item (
	id       INTEGER PRIMARY KEY,
	entry_id INTEGER NOT NULL REFERENCES trash (id) ON DELETE CASCADE,
	kind     TEXT NOT NULL CHECK (kind IN ('memory', 'revision', 'file')), -- file: one that lay in a deleted project, and still exists
	uid      TEXT NOT NULL, -- of the memory or file
	data     TEXT NOT NULL -- JSON, with a version
) STRICT;
CREATE INDEX trash_item_entry ON trash_item (entry_id, kind, id);
CREATE INDEX trash_item_uid ON trash_item (uid);

-- Links of which an end lies in the trash. They come back when both ends exist again.
CREATE TABLE trash_link (
	kind     TEXT NOT NULL CHECK (kind IN ('memory', 'file')),
	source   TEXT NOT NULL, -- id of the memory that links, or of the file that is linked to a memory
	target   TEXT NOT NULL, -- id of the memory
	position INTEGER NOT NULL,
	PRIMARY KEY (source, target, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX trash_link_target ON trash_link (target);

-- Files get the state "trashed". Until it is restored, such a file has an id that no caller can name.
ALTER TABLE file ADD COLUMN new_state TEXT NOT NULL DEFAULT 'arriving' CHECK (new_state IN ('arriving', 'stored', 'leaving', 'trashed'));
UPDATE file SET new_state = state;
DROP INDEX file_owner;
DROP INDEX file_state;
ALTER TABLE file DROP COLUMN state;
ALTER TABLE file RENAME COLUMN new_state TO state;
CREATE INDEX file_owner ON file (owner_id, state, size); -- all that a quota asks for
CREATE INDEX file_state ON file (state) WHERE state IN ('arriving', 'leaving');
