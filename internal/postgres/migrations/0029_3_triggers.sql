CREATE FUNCTION terms_of(content text, tags text) RETURNS SETOF text IMMUTABLE LANGUAGE sql AS $$
	SELECT CASE WHEN octet_length(t) > 500 THEN 'md5 ' || md5(t) ELSE t END
	FROM unnest(string_to_array(content || ' ' || tags, ' ')) t WHERE t <> ''
$$;

CREATE FUNCTION text_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP <> 'INSERT' THEN
		DELETE FROM passage_term WHERE passage_id = OLD.id AND term IN (SELECT terms_of(OLD.content, OLD.tags));
	END IF;
	IF TG_OP <> 'DELETE' THEN
		INSERT INTO passage_term (term, passage_id, times)
			SELECT t, NEW.id, count(*) FROM terms_of(NEW.content, NEW.tags) t GROUP BY t;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER text_changed AFTER INSERT OR UPDATE OR DELETE ON passage_text FOR EACH ROW
	EXECUTE FUNCTION text_changed();

CREATE FUNCTION change_bounded() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	WITH removed AS (DELETE FROM change WHERE seq <= NEW.seq - 65536 RETURNING xid)
	UPDATE change_floor SET xid = greatest(change_floor.xid, coalesce((SELECT max(r.xid) FROM removed r), '0'));
	RETURN NULL;
END $$;
CREATE TRIGGER change_bounded AFTER INSERT ON change FOR EACH ROW WHEN (NEW.seq % 4096 = 0)
	EXECUTE FUNCTION change_bounded();

-- Counters of partitions, the log of changes and the index of own metadata, in step with memories.
CREATE FUNCTION memory_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE partition p SET memories = p.memories + a.memories, bytes = p.bytes + a.bytes
		FROM (SELECT partition_id, count(*) AS memories, sum(octet_length(content) + octet_length(metadata)) AS bytes
			FROM added GROUP BY partition_id) a WHERE p.id = a.partition_id;
	INSERT INTO change (memory_id) SELECT id FROM added;
	RETURN NULL;
END $$;
CREATE TRIGGER memory_added AFTER INSERT ON memory REFERENCING NEW TABLE AS added FOR EACH STATEMENT
	EXECUTE FUNCTION memory_added();

CREATE FUNCTION memory_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE partition p SET memories = p.memories - d.memories, bytes = p.bytes - d.bytes
		FROM (SELECT partition_id, count(*) AS memories, sum(octet_length(content) + octet_length(metadata)) AS bytes
			FROM deleted GROUP BY partition_id) d WHERE p.id = d.partition_id;
	INSERT INTO change (memory_id) SELECT id FROM deleted;
	RETURN NULL;
END $$;
CREATE TRIGGER memory_deleted AFTER DELETE ON memory REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT
	EXECUTE FUNCTION memory_deleted();

CREATE FUNCTION memory_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE partition p SET memories = p.memories + c.memories, bytes = p.bytes + c.bytes
		FROM (SELECT partition_id, sum(n) AS memories, sum(b) AS bytes FROM (
				SELECT partition_id, 1 AS n, octet_length(content) + octet_length(metadata) AS b FROM present
				UNION ALL SELECT partition_id, -1, -octet_length(content) - octet_length(metadata) FROM past) b
			GROUP BY partition_id) c
		WHERE p.id = c.partition_id AND (c.memories <> 0 OR c.bytes <> 0);
	INSERT INTO change (memory_id) SELECT id FROM present;
	RETURN NULL;
END $$;
CREATE TRIGGER memory_changed AFTER UPDATE ON memory REFERENCING OLD TABLE AS past NEW TABLE AS present
	FOR EACH STATEMENT EXECUTE FUNCTION memory_changed();

CREATE FUNCTION memory_own_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP <> 'INSERT' THEN
		DELETE FROM memory_own WHERE memory_id = OLD.id;
	END IF;
	IF TG_OP <> 'DELETE' AND NEW.metadata <> '{}' THEN
		IF octet_length(NEW.metadata)
				<= least(2000, coalesce((SELECT s.value FROM setting s WHERE s.key = 'indexed_metadata'), 4096)) THEN
			INSERT INTO memory_own (partition_id, key, value, memory_id)
				SELECT NEW.partition_id, o.key, o.value, NEW.id FROM own_of(NEW.metadata) o;
		ELSE
			INSERT INTO memory_own (partition_id, key, value, memory_id)
				VALUES (NEW.partition_id, '', '{"long": true}', NEW.id);
		END IF;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER memory_own_added AFTER INSERT ON memory FOR EACH ROW WHEN (NEW.metadata <> '{}')
	EXECUTE FUNCTION memory_own_kept();
CREATE TRIGGER memory_own_deleted AFTER DELETE ON memory FOR EACH ROW WHEN (OLD.metadata <> '{}')
	EXECUTE FUNCTION memory_own_kept();
CREATE TRIGGER memory_own_changed AFTER UPDATE ON memory FOR EACH ROW
	WHEN (NEW.partition_id <> OLD.partition_id OR NEW.metadata <> OLD.metadata) EXECUTE FUNCTION memory_own_kept();

CREATE FUNCTION revision_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP <> 'INSERT' THEN
		UPDATE partition SET revisions = revisions - 1,
			bytes = bytes - octet_length(OLD.content) - octet_length(OLD.attributes) WHERE id = OLD.partition_id;
	END IF;
	IF TG_OP <> 'DELETE' THEN
		UPDATE partition SET revisions = revisions + 1,
			bytes = bytes + octet_length(NEW.content) + octet_length(NEW.attributes) WHERE id = NEW.partition_id;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER memory_revision_counted AFTER INSERT OR DELETE OR UPDATE OF partition_id, content, attributes
	ON memory_revision FOR EACH ROW EXECUTE FUNCTION revision_counted();

CREATE FUNCTION passage_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE partition p SET passages = p.passages + a.passages
		FROM (SELECT id >> 32 AS partition_id, count(*) AS passages FROM added GROUP BY id >> 32) a
		WHERE p.id = a.partition_id;
	RETURN NULL;
END $$;
CREATE TRIGGER passage_added AFTER INSERT ON passage REFERENCING NEW TABLE AS added FOR EACH STATEMENT
	EXECUTE FUNCTION passage_added();

CREATE FUNCTION passage_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE partition p SET passages = p.passages - d.passages
		FROM (SELECT id >> 32 AS partition_id, count(*) AS passages FROM deleted GROUP BY id >> 32) d
		WHERE p.id = d.partition_id;
	DELETE FROM passage_text WHERE id IN (SELECT id FROM deleted);
	RETURN NULL;
END $$;
CREATE TRIGGER passage_deleted AFTER DELETE ON passage REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT
	EXECUTE FUNCTION passage_deleted();

CREATE FUNCTION passage_embedded() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO change (memory_id) VALUES (NEW.memory_id);
	RETURN NULL;
END $$;
CREATE TRIGGER passage_embedded AFTER UPDATE OF vector ON passage FOR EACH ROW EXECUTE FUNCTION passage_embedded();

-- A file whose memory is deleted stays in the memory's project.
CREATE FUNCTION file_unlinked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE file SET memory_id = NULL, project_id = (SELECT p.project_id FROM partition p WHERE p.id = OLD.partition_id)
		WHERE memory_id = OLD.id;
	RETURN OLD;
END $$;
CREATE TRIGGER file_unlinked BEFORE DELETE ON memory FOR EACH ROW EXECUTE FUNCTION file_unlinked();

-- The same where the partition is deleted, since it is gone before its memories are.
CREATE FUNCTION file_unlinked_all() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE file SET memory_id = NULL, project_id = OLD.project_id
		WHERE memory_id IN (SELECT m.id FROM memory m WHERE m.partition_id = OLD.id);
	RETURN OLD;
END $$;
CREATE TRIGGER file_unlinked_all BEFORE DELETE ON partition FOR EACH ROW EXECUTE FUNCTION file_unlinked_all();
