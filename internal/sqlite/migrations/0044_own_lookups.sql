-- In a store with keys of users, sealed metadata end in a line with their lookups: the same object with keyed hashes in
-- place of keys and values. The index of own metadata has these. Sealed metadata without that line, from before, are
-- read, as are those that are too long.
DROP TRIGGER memory_own_added;
DROP TRIGGER memory_own_deleted;
DROP TRIGGER memory_own_changed;

INSERT OR IGNORE INTO memory_own (partition_id, key, value, memory_id)
	SELECT partition_id, '', x'00', id FROM memory WHERE metadata < char(2);

CREATE TRIGGER memory_own_added AFTER INSERT ON memory WHEN NEW.metadata <> '{}' BEGIN
	INSERT OR IGNORE INTO memory_own (partition_id, key, value, memory_id)
		SELECT NEW.partition_id, k.key, CASE k.type WHEN 'object' THEN x'' ELSE k.value END, NEW.id
		FROM json_each(CASE WHEN json_valid(substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1)) AND octet_length(substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1)) <= coalesce((SELECT value FROM setting WHERE key = 'indexed_metadata'), 4096)
			THEN substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1) ELSE '{}' END) k
		WHERE k.type NOT IN ('null', 'array')
		UNION ALL SELECT NEW.partition_id, k.key, CASE WHEN e.type IN ('null', 'array', 'object') THEN x'' ELSE e.value END, NEW.id
		FROM json_each(CASE WHEN instr(substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1), '[') AND json_valid(substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1)) AND octet_length(substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1)) <= coalesce((SELECT value FROM setting WHERE key = 'indexed_metadata'), 4096)
			THEN substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1) ELSE '{}' END) k,
			json_each(CASE k.value WHEN '[]' THEN '[null]' ELSE k.value END) e
		WHERE k.type = 'array'
		UNION ALL SELECT NEW.partition_id, '', x'00', NEW.id WHERE NEW.metadata <> '{}'
			AND (substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1) < char(2) OR NOT octet_length(substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1)) <= coalesce((SELECT value FROM setting WHERE key = 'indexed_metadata'), 4096));
END;

CREATE TRIGGER memory_own_deleted AFTER DELETE ON memory WHEN OLD.metadata <> '{}' BEGIN
	DELETE FROM memory_own WHERE partition_id = OLD.partition_id AND memory_id = OLD.id
		AND key IN (SELECT k.key FROM json_each(CASE WHEN json_valid(substr(OLD.metadata, instr(OLD.metadata, char(10)) + 1)) THEN substr(OLD.metadata, instr(OLD.metadata, char(10)) + 1) ELSE '{}' END) k
			UNION ALL SELECT '')
		AND value IN (SELECT CASE k.type WHEN 'array' THEN e.value ELSE k.value END
			FROM json_each(CASE WHEN json_valid(substr(OLD.metadata, instr(OLD.metadata, char(10)) + 1)) THEN substr(OLD.metadata, instr(OLD.metadata, char(10)) + 1) ELSE '{}' END) k,
			json_each(CASE k.type WHEN 'array' THEN k.value ELSE '[null]' END) e
			UNION ALL SELECT x'' UNION ALL SELECT x'00');
END;

CREATE TRIGGER memory_own_changed AFTER UPDATE OF partition_id, metadata ON memory
	WHEN NEW.partition_id <> OLD.partition_id OR NEW.metadata <> OLD.metadata BEGIN
	DELETE FROM memory_own WHERE partition_id = OLD.partition_id AND memory_id = OLD.id
		AND key IN (SELECT k.key FROM json_each(CASE WHEN json_valid(substr(OLD.metadata, instr(OLD.metadata, char(10)) + 1)) THEN substr(OLD.metadata, instr(OLD.metadata, char(10)) + 1) ELSE '{}' END) k
			UNION ALL SELECT '')
		AND value IN (SELECT CASE k.type WHEN 'array' THEN e.value ELSE k.value END
			FROM json_each(CASE WHEN json_valid(substr(OLD.metadata, instr(OLD.metadata, char(10)) + 1)) THEN substr(OLD.metadata, instr(OLD.metadata, char(10)) + 1) ELSE '{}' END) k,
			json_each(CASE k.type WHEN 'array' THEN k.value ELSE '[null]' END) e
			UNION ALL SELECT x'' UNION ALL SELECT x'00');
	INSERT OR IGNORE INTO memory_own (partition_id, key, value, memory_id)
		SELECT NEW.partition_id, k.key, CASE k.type WHEN 'object' THEN x'' ELSE k.value END, NEW.id
		FROM json_each(CASE WHEN json_valid(substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1)) AND octet_length(substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1)) <= coalesce((SELECT value FROM setting WHERE key = 'indexed_metadata'), 4096)
			THEN substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1) ELSE '{}' END) k
		WHERE k.type NOT IN ('null', 'array')
		UNION ALL SELECT NEW.partition_id, k.key, CASE WHEN e.type IN ('null', 'array', 'object') THEN x'' ELSE e.value END, NEW.id
		FROM json_each(CASE WHEN instr(substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1), '[') AND json_valid(substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1)) AND octet_length(substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1)) <= coalesce((SELECT value FROM setting WHERE key = 'indexed_metadata'), 4096)
			THEN substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1) ELSE '{}' END) k,
			json_each(CASE k.value WHEN '[]' THEN '[null]' ELSE k.value END) e
		WHERE k.type = 'array'
		UNION ALL SELECT NEW.partition_id, '', x'00', NEW.id WHERE NEW.metadata <> '{}'
			AND (substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1) < char(2) OR NOT octet_length(substr(NEW.metadata, instr(NEW.metadata, char(10)) + 1)) <= coalesce((SELECT value FROM setting WHERE key = 'indexed_metadata'), 4096));
END;
