-- The core: people, collections, projects, memories and what finds them.
-- Times are microseconds since 1970-01-01 UTC. `id` is a row id and never leaves the store; what callers see is `uid`.

CREATE TABLE user (
	id         INTEGER PRIMARY KEY,
	uid        TEXT NOT NULL UNIQUE,
	created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE setting (
	key   TEXT PRIMARY KEY,
	value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- An embedding profile: which model, how long its vectors are, how texts were split for it.
-- Vectors of different profiles are never compared.
CREATE TABLE profile (
	id         INTEGER PRIMARY KEY,
	key        TEXT NOT NULL UNIQUE,
	model      TEXT NOT NULL,
	dimensions INTEGER NOT NULL,
	created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE collection (
	id          INTEGER PRIMARY KEY,
	owner_id    INTEGER NOT NULL REFERENCES user (id),
	name        TEXT NOT NULL,
	description TEXT NOT NULL,
	own_profile INTEGER REFERENCES profile (id), -- the caller brings the vectors; NULL: the store's embedder makes them
	created_at  INTEGER NOT NULL,
	updated_at  INTEGER NOT NULL,
	UNIQUE (owner_id, name)
) STRICT;

CREATE TABLE project (
	id         INTEGER PRIMARY KEY,
	owner_id   INTEGER NOT NULL REFERENCES user (id),
	uid        TEXT NOT NULL, -- unique per owner, never global
	name       TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	UNIQUE (owner_id, uid)
) STRICT;
CREATE INDEX project_name ON project (owner_id, name);

CREATE TABLE project_member (
	project_id INTEGER NOT NULL REFERENCES project (id) ON DELETE CASCADE,
	user_id    INTEGER NOT NULL REFERENCES user (id) ON DELETE CASCADE,
	role       TEXT NOT NULL CHECK (role IN ('reader', 'writer', 'owner')),
	created_at INTEGER NOT NULL,
	PRIMARY KEY (user_id, project_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX project_member_project ON project_member (project_id);

-- A partition is the part of a collection that lies in one project (or in none): exactly what visibility depends on.
-- Access is decided for partitions; indexes are searched by partition.
-- Ids of partitions, memories and passages are never used again, so that work under way in the background cannot mistake
-- one for another.
CREATE TABLE partition (
	id            INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id < 1 << 31),
	collection_id INTEGER NOT NULL REFERENCES collection (id) ON DELETE CASCADE,
	project_id    INTEGER REFERENCES project (id),
	next_passage  INTEGER NOT NULL DEFAULT 0,
	memories      INTEGER NOT NULL DEFAULT 0, -- the counts are kept by the triggers below
	passages      INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX partition_place ON partition (collection_id, ifnull(project_id, 0));
CREATE INDEX partition_project ON partition (project_id);

CREATE TABLE memory (
	id             INTEGER PRIMARY KEY AUTOINCREMENT,
	uid            TEXT NOT NULL UNIQUE,
	partition_id   INTEGER NOT NULL REFERENCES partition (id) ON DELETE CASCADE,
	content        TEXT NOT NULL,
	event_type     TEXT,
	state          TEXT,
	importance     TEXT,
	classification TEXT,
	rule_type      TEXT,
	metadata       TEXT NOT NULL, -- JSON object: the caller's own keys only
	revision       INTEGER NOT NULL,
	created_at     INTEGER NOT NULL,
	updated_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX memory_updated ON memory (partition_id, updated_at);
CREATE INDEX memory_created ON memory (partition_id, created_at);
CREATE INDEX memory_event ON memory (partition_id, event_type) WHERE event_type IS NOT NULL;

CREATE TABLE memory_tag (
	memory_id INTEGER NOT NULL REFERENCES memory (id) ON DELETE CASCADE,
	tag       TEXT NOT NULL,
	position  INTEGER NOT NULL,
	PRIMARY KEY (memory_id, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_tag_tag ON memory_tag (tag);

CREATE TABLE memory_link (
	memory_id  INTEGER NOT NULL REFERENCES memory (id) ON DELETE CASCADE,
	related_id INTEGER NOT NULL REFERENCES memory (id) ON DELETE CASCADE,
	position   INTEGER NOT NULL,
	PRIMARY KEY (memory_id, related_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_link_related ON memory_link (related_id);

-- The former states of a memory, as they were before each update. The present state is in memory.
CREATE TABLE memory_revision (
	id         INTEGER PRIMARY KEY,
	memory_id  INTEGER NOT NULL REFERENCES memory (id) ON DELETE CASCADE,
	revision   INTEGER NOT NULL,
	partition_id INTEGER NOT NULL REFERENCES partition (id) ON DELETE CASCADE, -- where it lay then: who may see this state
	content    TEXT NOT NULL,
	attributes TEXT NOT NULL, -- JSON object as shown to callers: known keys and own keys
	created_at INTEGER NOT NULL, -- when this state was written
	UNIQUE (memory_id, revision)
) STRICT;
CREATE INDEX memory_revision_partition ON memory_revision (partition_id);

-- What is embedded and searched: a memory's content, or a piece of it. The id is partition << 32 | n, so that a
-- partition's vectors lie side by side and full text is limited to a partition by a range of row ids.
CREATE TABLE passage (
	id         INTEGER PRIMARY KEY,
	memory_id  INTEGER NOT NULL REFERENCES memory (id) ON DELETE CASCADE,
	start      INTEGER NOT NULL, -- byte offset into memory.content
	length     INTEGER NOT NULL, -- bytes
	blank      INTEGER NOT NULL, -- 1: white space only, which nobody embeds
	profile_id INTEGER REFERENCES profile (id), -- NULL: no vector is wanted
	vector     BLOB -- float32, little endian, unit length; NULL with a profile: waits to be embedded
) STRICT;
CREATE INDEX passage_memory ON passage (memory_id);
CREATE INDEX passage_pending ON passage (profile_id, id) WHERE vector IS NULL AND profile_id IS NOT NULL;

-- The terms are analysed before they come here (internal/text), hence the plainest of tokenizers.
CREATE VIRTUAL TABLE passage_text USING fts5 (
	content, tags, content = '', contentless_delete = 1, tokenize = 'ascii'
);

-- Every change of a memory, so that indexes in memory, in this process and in others, catch up. The newest 65,536 are
-- kept; an index that is further behind loads everything again.
CREATE TABLE change (
	seq       INTEGER PRIMARY KEY,
	memory_id INTEGER NOT NULL
) STRICT;

CREATE TRIGGER change_bounded AFTER INSERT ON change WHEN NEW.seq % 256 = 0 BEGIN
	DELETE FROM change WHERE seq <= NEW.seq - 65536;
END;

CREATE TRIGGER memory_added AFTER INSERT ON memory BEGIN
	UPDATE partition SET memories = memories + 1 WHERE id = NEW.partition_id;
	INSERT INTO change (memory_id) VALUES (NEW.id);
END;

CREATE TRIGGER memory_deleted AFTER DELETE ON memory BEGIN
	UPDATE partition SET memories = memories - 1 WHERE id = OLD.partition_id;
	INSERT INTO change (memory_id) VALUES (OLD.id);
END;

CREATE TRIGGER memory_changed AFTER UPDATE ON memory BEGIN
	UPDATE partition SET memories = memories - 1 WHERE id = OLD.partition_id AND NEW.partition_id <> OLD.partition_id;
	UPDATE partition SET memories = memories + 1 WHERE id = NEW.partition_id AND NEW.partition_id <> OLD.partition_id;
	INSERT INTO change (memory_id) VALUES (NEW.id);
END;

CREATE TRIGGER passage_added AFTER INSERT ON passage BEGIN
	UPDATE partition SET passages = passages + 1 WHERE id = NEW.id >> 32;
END;

CREATE TRIGGER passage_deleted AFTER DELETE ON passage BEGIN
	UPDATE partition SET passages = passages - 1 WHERE id = OLD.id >> 32;
	DELETE FROM passage_text WHERE rowid = OLD.id;
END;

CREATE TRIGGER passage_embedded AFTER UPDATE OF vector ON passage BEGIN
	INSERT INTO change (memory_id) VALUES (NEW.memory_id);
END;
