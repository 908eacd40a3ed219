-- Hashes of rows, kept by temporary triggers of each connection that writes (internal/rowhash). They lie apart from the rows, so that a
-- row which is lost is known here.
CREATE TABLE row_hash (
	kind INTEGER NOT NULL, -- which table's
	id   INTEGER NOT NULL, -- the row, or what a set of rows belongs to
	hash BLOB NOT NULL,    -- 16 bytes; empty: the row was found to be damaged, and has been kept as it was
	PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
