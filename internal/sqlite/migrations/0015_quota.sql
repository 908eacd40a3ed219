-- What the memories of a partition take, kept in step by triggers, so that quotas cost a look at a few rows. Bytes are those of
-- contents and metadata, present and past.
ALTER TABLE partition ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE partition ADD COLUMN revisions INTEGER NOT NULL DEFAULT 0;

UPDATE partition SET
	bytes = (SELECT ifnull(sum(octet_length(content) + octet_length(metadata)), 0) FROM memory WHERE partition_id = partition.id)
		+ (SELECT ifnull(sum(octet_length(content) + octet_length(attributes)), 0) FROM memory_revision WHERE partition_id = partition.id),
	revisions = (SELECT count(*) FROM memory_revision WHERE partition_id = partition.id);

DROP TRIGGER memory_added;
DROP TRIGGER memory_deleted;
DROP TRIGGER memory_changed;

CREATE TRIGGER memory_added AFTER INSERT ON memory BEGIN
	UPDATE partition SET memories = memories + 1, bytes = bytes + octet_length(NEW.content) + octet_length(NEW.metadata)
		WHERE id = NEW.partition_id;
	INSERT INTO change (memory_id) VALUES (NEW.id);
END;

CREATE TRIGGER memory_deleted AFTER DELETE ON memory BEGIN
	UPDATE partition SET memories = memories - 1, bytes = bytes - octet_length(OLD.content) - octet_length(OLD.metadata)
		WHERE id = OLD.partition_id;
	INSERT INTO change (memory_id) VALUES (OLD.id);
END;

CREATE TRIGGER memory_changed AFTER UPDATE ON memory BEGIN
	UPDATE partition SET memories = memories - (NEW.partition_id <> OLD.partition_id),
		bytes = bytes - octet_length(OLD.content) - octet_length(OLD.metadata) WHERE id = OLD.partition_id;
	UPDATE partition SET memories = memories + (NEW.partition_id <> OLD.partition_id),
		bytes = bytes + octet_length(NEW.content) + octet_length(NEW.metadata) WHERE id = NEW.partition_id;
	INSERT INTO change (memory_id) VALUES (NEW.id);
END;

CREATE TRIGGER memory_revision_added AFTER INSERT ON memory_revision BEGIN
	UPDATE partition SET revisions = revisions + 1, bytes = bytes + octet_length(NEW.content) + octet_length(NEW.attributes)
		WHERE id = NEW.partition_id;
END;

CREATE TRIGGER memory_revision_deleted AFTER DELETE ON memory_revision BEGIN
	UPDATE partition SET revisions = revisions - 1, bytes = bytes - octet_length(OLD.content) - octet_length(OLD.attributes)
		WHERE id = OLD.partition_id;
END;

CREATE TRIGGER memory_revision_changed AFTER UPDATE OF partition_id, content, attributes ON memory_revision BEGIN
	UPDATE partition SET revisions = revisions - 1, bytes = bytes - octet_length(OLD.content) - octet_length(OLD.attributes)
		WHERE id = OLD.partition_id;
	UPDATE partition SET revisions = revisions + 1, bytes = bytes + octet_length(NEW.content) + octet_length(NEW.attributes)
		WHERE id = NEW.partition_id;
END;
