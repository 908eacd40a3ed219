-- What the search index holds of memories, as bytes that are loaded instead of reading and analysing their texts.
-- A memory is in one segment of its partition at most, and counts only if it is not in segment_stale.
CREATE TABLE segmented (
	partition_id INTEGER PRIMARY KEY,
	profile_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	upto INTEGER NOT NULL,
	memories INTEGER NOT NULL
) STRICT;
CREATE TABLE segment (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	partition_id INTEGER NOT NULL REFERENCES segmented (partition_id) ON DELETE CASCADE,
	memories INTEGER NOT NULL,
	first_row INTEGER NOT NULL,
	last_row INTEGER NOT NULL,
	data BLOB NOT NULL
) STRICT;
CREATE INDEX segment_partition ON segment (partition_id, id);
CREATE TABLE segment_stale (
	partition_id INTEGER NOT NULL REFERENCES segmented (partition_id) ON DELETE CASCADE,
	memory_id INTEGER NOT NULL,
	PRIMARY KEY (partition_id, memory_id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER segment_stale_added AFTER INSERT ON memory
	WHEN NEW.id <= (SELECT upto FROM segmented WHERE partition_id = NEW.partition_id) BEGIN
	INSERT OR IGNORE INTO segment_stale (partition_id, memory_id) VALUES (NEW.partition_id, NEW.id);
END;
CREATE TRIGGER segment_stale_deleted AFTER DELETE ON memory
	WHEN OLD.id <= (SELECT upto FROM segmented WHERE partition_id = OLD.partition_id) BEGIN
	INSERT OR IGNORE INTO segment_stale (partition_id, memory_id) VALUES (OLD.partition_id, OLD.id);
END;
CREATE TRIGGER segment_stale_changed AFTER UPDATE ON memory BEGIN
	INSERT OR IGNORE INTO segment_stale (partition_id, memory_id)
		SELECT partition_id, NEW.id FROM segmented WHERE partition_id IN (OLD.partition_id, NEW.partition_id) AND upto >= NEW.id;
END;
CREATE TRIGGER segment_stale_embedded AFTER UPDATE OF vector ON passage
	WHEN NEW.memory_id <= (SELECT upto FROM segmented WHERE partition_id = NEW.id >> 32) BEGIN
	INSERT OR IGNORE INTO segment_stale (partition_id, memory_id) VALUES (NEW.id >> 32, NEW.memory_id);
END;
CREATE TRIGGER segmented_partition BEFORE DELETE ON partition BEGIN
	DELETE FROM segmented WHERE partition_id = OLD.id;
END;
