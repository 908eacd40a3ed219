-- The callers' own metadata by key and value, so that filters read only the memories that match. Made from the memories by
-- triggers, however these are written; the setting 'indexed_metadata' bounds the bytes of metadata that are indexed. It
-- has no hashes: it can be made again.
--
-- A list has a row for each of its elements. A key whose value is no text, number or boolean has a row with the value
-- x'': it is set. A memory whose metadata are too long has one row with the key '' and the value x'00' instead: filters
-- read its metadata.
CREATE TABLE memory_own (
	partition_id INTEGER NOT NULL, -- the memory's
	key          TEXT NOT NULL,
	value        ANY NOT NULL,     -- booleans as 1 and 0
	memory_id    INTEGER NOT NULL,
	PRIMARY KEY (partition_id, key, value, memory_id)
) STRICT, WITHOUT ROWID;

INSERT OR IGNORE INTO memory_own (partition_id, key, value, memory_id)
		SELECT m.partition_id, k.key, CASE k.type WHEN 'object' THEN x'' ELSE k.value END, m.id
		FROM memory m, json_each(CASE WHEN json_valid(m.metadata) AND octet_length(m.metadata) <= coalesce((SELECT value FROM setting WHERE key = 'indexed_metadata'), 4096)
			THEN m.metadata ELSE '{}' END) k
		WHERE k.type NOT IN ('null', 'array')
		UNION ALL SELECT m.partition_id, k.key, CASE WHEN e.type IN ('null', 'array', 'object') THEN x'' ELSE e.value END, m.id
		FROM memory m, json_each(CASE WHEN instr(m.metadata, '[') AND json_valid(m.metadata) AND octet_length(m.metadata) <= coalesce((SELECT value FROM setting WHERE key = 'indexed_metadata'), 4096)
			THEN m.metadata ELSE '{}' END) k,
			json_each(CASE k.value WHEN '[]' THEN '[null]' ELSE k.value END) e
		WHERE k.type = 'array'
		UNION ALL SELECT m.partition_id, '', x'00', m.id FROM memory m WHERE m.metadata <> '{}'
			AND NOT octet_length(m.metadata) <= coalesce((SELECT value FROM setting WHERE key = 'indexed_metadata'), 4096);

CREATE TRIGGER memory_own_added AFTER INSERT ON memory WHEN NEW.metadata <> '{}' BEGIN
	INSERT OR IGNORE INTO memory_own (partition_id, key, value, memory_id)
		SELECT NEW.partition_id, k.key, CASE k.type WHEN 'object' THEN x'' ELSE k.value END, NEW.id
		FROM json_each(CASE WHEN json_valid(NEW.metadata) AND octet_length(NEW.metadata) <= coalesce((SELECT value FROM setting WHERE key = 'indexed_metadata'), 4096)
			THEN NEW.metadata ELSE '{}' END) k
		WHERE k.type NOT IN ('null', 'array')
		UNION ALL SELECT NEW.partition_id, k.key, CASE WHEN e.type IN ('null', 'array', 'object') THEN x'' ELSE e.value END, NEW.id
		FROM json_each(CASE WHEN instr(NEW.metadata, '[') AND json_valid(NEW.metadata) AND octet_length(NEW.metadata) <= coalesce((SELECT value FROM setting WHERE key = 'indexed_metadata'), 4096)
			THEN NEW.metadata ELSE '{}' END) k,
			json_each(CASE k.value WHEN '[]' THEN '[null]' ELSE k.value END) e
		WHERE k.type = 'array'
		UNION ALL SELECT NEW.partition_id, '', x'00', NEW.id WHERE NEW.metadata <> '{}'
			AND NOT octet_length(NEW.metadata) <= coalesce((SELECT value FROM setting WHERE key = 'indexed_metadata'), 4096);
END;

CREATE TRIGGER memory_own_deleted AFTER DELETE ON memory WHEN OLD.metadata <> '{}' BEGIN
	DELETE FROM memory_own WHERE partition_id = OLD.partition_id AND memory_id = OLD.id
		AND key IN (SELECT k.key FROM json_each(CASE WHEN json_valid(OLD.metadata) THEN OLD.metadata ELSE '{}' END) k
			UNION ALL SELECT '')
		AND value IN (SELECT e.value FROM json_each(CASE WHEN json_valid(OLD.metadata) THEN OLD.metadata ELSE '{}' END) k,
			json_each(CASE k.type WHEN 'array' THEN k.value ELSE json_array(k.value) END) e
			UNION ALL SELECT x'' UNION ALL SELECT x'00');
END;

CREATE TRIGGER memory_own_changed AFTER UPDATE OF partition_id, metadata ON memory
	WHEN NEW.partition_id <> OLD.partition_id OR NEW.metadata <> OLD.metadata BEGIN
	DELETE FROM memory_own WHERE partition_id = OLD.partition_id AND memory_id = OLD.id
		AND key IN (SELECT k.key FROM json_each(CASE WHEN json_valid(OLD.metadata) THEN OLD.metadata ELSE '{}' END) k
			UNION ALL SELECT '')
		AND value IN (SELECT e.value FROM json_each(CASE WHEN json_valid(OLD.metadata) THEN OLD.metadata ELSE '{}' END) k,
			json_each(CASE k.type WHEN 'array' THEN k.value ELSE json_array(k.value) END) e
			UNION ALL SELECT x'' UNION ALL SELECT x'00');
	INSERT OR IGNORE INTO memory_own (partition_id, key, value, memory_id)
		SELECT NEW.partition_id, k.key, CASE k.type WHEN 'object' THEN x'' ELSE k.value END, NEW.id
		FROM json_each(CASE WHEN json_valid(NEW.metadata) AND octet_length(NEW.metadata) <= coalesce((SELECT value FROM setting WHERE key = 'indexed_metadata'), 4096)
			THEN NEW.metadata ELSE '{}' END) k
		WHERE k.type NOT IN ('null', 'array')
		UNION ALL SELECT NEW.partition_id, k.key, CASE WHEN e.type IN ('null', 'array', 'object') THEN x'' ELSE e.value END, NEW.id
		FROM json_each(CASE WHEN instr(NEW.metadata, '[') AND json_valid(NEW.metadata) AND octet_length(NEW.metadata) <= coalesce((SELECT value FROM setting WHERE key = 'indexed_metadata'), 4096)
			THEN NEW.metadata ELSE '{}' END) k,
			json_each(CASE k.value WHEN '[]' THEN '[null]' ELSE k.value END) e
		WHERE k.type = 'array'
		UNION ALL SELECT NEW.partition_id, '', x'00', NEW.id WHERE NEW.metadata <> '{}'
			AND NOT octet_length(NEW.metadata) <= coalesce((SELECT value FROM setting WHERE key = 'indexed_metadata'), 4096);
END;
