-- Contents of files in object storage. Each object that may exist has a row: it is written before the object, and goes
-- after it. So nothing that a crash leaves behind is forgotten.
CREATE TABLE file_object (
	key TEXT PRIMARY KEY,
	state TEXT NOT NULL CHECK (state IN ('arriving', 'stored', 'leaving')),
	size INTEGER NOT NULL,
	due_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX file_object_due ON file_object (due_at) WHERE state <> 'stored';

ALTER TABLE file_chunk ADD COLUMN object TEXT;
CREATE UNIQUE INDEX file_chunk_object ON file_chunk (object) WHERE object IS NOT NULL;

CREATE TRIGGER file_chunk_gone AFTER DELETE ON file_chunk WHEN OLD.object IS NOT NULL BEGIN
	INSERT INTO file_object (key, state, size, due_at) VALUES (OLD.object, 'leaving', 0, 0)
		ON CONFLICT (key) DO UPDATE SET state = 'leaving', due_at = 0;
END;
CREATE TRIGGER file_chunk_moved AFTER UPDATE OF object ON file_chunk
	WHEN OLD.object IS NOT NULL AND OLD.object IS NOT NEW.object BEGIN
	INSERT INTO file_object (key, state, size, due_at) VALUES (OLD.object, 'leaving', 0, 0)
		ON CONFLICT (key) DO UPDATE SET state = 'leaving', due_at = 0;
END;
