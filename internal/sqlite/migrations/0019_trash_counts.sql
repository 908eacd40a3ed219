-- Past versions in the trash are counted, so that a quota can bound them, and its links get numbers, by which their hashes are kept.
ALTER TABLE trash ADD COLUMN revisions INTEGER NOT NULL DEFAULT 0;
UPDATE trash SET revisions = (SELECT count(*) FROM trash_item i WHERE i.entry_id = trash.id AND i.kind = 'revision');

CREATE TABLE new_trash_link (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	kind     TEXT NOT NULL CHECK (kind IN ('memory', 'file')),
	source   TEXT NOT NULL, -- id of the memory that links, or of the file that is linked to a memory
	target   TEXT NOT NULL, -- id of the memory
	position INTEGER NOT NULL,
	UNIQUE (source, target, kind)
) STRICT;
INSERT INTO new_trash_link (kind, source, target, position) SELECT kind, source, target, position FROM trash_link;
DROP TABLE trash_link;
ALTER TABLE new_trash_link RENAME TO trash_link;
CREATE INDEX trash_link_target ON trash_link (target);
