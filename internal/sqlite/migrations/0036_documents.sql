-- Documents are found by what they say. The text of a file is the content of a memory in a collection without a name,
-- which no caller can name, in the place of the file. A stored file without its text waits to be read.
ALTER TABLE file ADD COLUMN text_id INTEGER;
ALTER TABLE file ADD COLUMN text_state TEXT NOT NULL DEFAULT 'waiting'
	CHECK (text_state IN ('waiting', 'indexed', 'none', 'failed'));
ALTER TABLE file ADD COLUMN text_info TEXT NOT NULL DEFAULT '';
ALTER TABLE file ADD COLUMN text_places TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX file_text ON file (text_id) WHERE text_id IS NOT NULL;
CREATE INDEX file_text_waiting ON file (owner_id, id) WHERE text_state = 'waiting' AND state = 'stored';

-- The text of a file that goes, or lies elsewhere now, goes. If the file stays, it is read again for its new place.
CREATE TRIGGER file_text_left AFTER UPDATE OF memory_id, project_id, owner_id, state ON file
	WHEN OLD.text_id IS NOT NULL AND (NEW.state <> 'stored' OR NOT EXISTS (
		SELECT 1 FROM memory t JOIN partition tp ON tp.id = t.partition_id JOIN collection tc ON tc.id = tp.collection_id
			LEFT JOIN memory m ON m.id = NEW.memory_id LEFT JOIN partition p ON p.id = m.partition_id
			LEFT JOIN collection c ON c.id = p.collection_id
		WHERE t.id = OLD.text_id AND tc.owner_id = coalesce(c.owner_id, NEW.owner_id) AND coalesce(tp.project_id, 0) =
			coalesce(CASE WHEN NEW.memory_id IS NULL THEN NEW.project_id ELSE p.project_id END, 0))) BEGIN
	DELETE FROM memory WHERE id = OLD.text_id;
END;
CREATE TRIGGER file_text_deleted AFTER DELETE ON file WHEN OLD.text_id IS NOT NULL BEGIN
	DELETE FROM memory WHERE id = OLD.text_id;
END;
CREATE TRIGGER file_text_gone BEFORE DELETE ON memory BEGIN
	UPDATE file SET text_id = NULL, text_state = 'waiting', text_info = '', text_places = '' WHERE text_id = OLD.id;
END;

-- Other content, as after an import, is read anew.
CREATE TRIGGER file_text_old AFTER UPDATE OF sha256 ON file
	WHEN OLD.sha256 <> NEW.sha256 AND NEW.text_state <> 'waiting' BEGIN
	DELETE FROM memory WHERE id = OLD.text_id;
	UPDATE file SET text_id = NULL, text_state = 'waiting', text_info = '', text_places = '' WHERE id = NEW.id;
END;

-- A file moves with its memory.
CREATE TRIGGER file_moved AFTER UPDATE OF partition_id ON memory WHEN OLD.partition_id <> NEW.partition_id BEGIN
	UPDATE file SET memory_id = NEW.id WHERE memory_id = NEW.id AND text_id IS NOT NULL;
END;
