-- Own metadata that are removed are found by the values that were indexed. Older versions of SQLite write a number with
-- fewer digits when it becomes JSON again, and then find no row.
DROP TRIGGER memory_own_deleted;
DROP TRIGGER memory_own_changed;

CREATE TRIGGER memory_own_deleted AFTER DELETE ON memory WHEN OLD.metadata <> '{}' BEGIN
	DELETE FROM memory_own WHERE partition_id = OLD.partition_id AND memory_id = OLD.id
		AND key IN (SELECT k.key FROM json_each(CASE WHEN json_valid(OLD.metadata) THEN OLD.metadata ELSE '{}' END) k
			UNION ALL SELECT '')
		AND value IN (SELECT CASE k.type WHEN 'array' THEN e.value ELSE k.value END
			FROM json_each(CASE WHEN json_valid(OLD.metadata) THEN OLD.metadata ELSE '{}' END) k,
			json_each(CASE k.type WHEN 'array' THEN k.value ELSE '[null]' END) e
			UNION ALL SELECT x'' UNION ALL SELECT x'00');
END;

CREATE TRIGGER memory_own_changed AFTER UPDATE OF partition_id, metadata ON memory
	WHEN NEW.partition_id <> OLD.partition_id OR NEW.metadata <> OLD.metadata BEGIN
	DELETE FROM memory_own WHERE partition_id = OLD.partition_id AND memory_id = OLD.id
		AND key IN (SELECT k.key FROM json_each(CASE WHEN json_valid(OLD.metadata) THEN OLD.metadata ELSE '{}' END) k
			UNION ALL SELECT '')
		AND value IN (SELECT CASE k.type WHEN 'array' THEN e.value ELSE k.value END
			FROM json_each(CASE WHEN json_valid(OLD.metadata) THEN OLD.metadata ELSE '{}' END) k,
			json_each(CASE k.type WHEN 'array' THEN k.value ELSE '[null]' END) e
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
