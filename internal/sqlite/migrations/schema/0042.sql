-- What the migrations up to this number make of an empty file: new files start from it, and run only later migrations.
-- A test compares the two. It is written once, like a migration, and never changes.

CREATE TABLE "users" (
	id         INTEGER PRIMARY KEY,
	uid        TEXT NOT NULL,
	created_at INTEGER NOT NULL
, name TEXT, name_key TEXT, email TEXT, role TEXT NOT NULL DEFAULT 'user' CHECK (role IN ('user', 'admin')), password TEXT, disabled_at INTEGER, updated_at INTEGER, namespace TEXT NOT NULL DEFAULT '', uid_key TEXT) STRICT;
CREATE TABLE setting (
	key   TEXT PRIMARY KEY,
	value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE profile (
	id         INTEGER PRIMARY KEY,
	key        TEXT NOT NULL UNIQUE,
	model      TEXT NOT NULL,
	dimensions INTEGER NOT NULL,
	created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE collection (
	id          INTEGER PRIMARY KEY,
	owner_id    INTEGER NOT NULL REFERENCES "users" (id),
	name        TEXT NOT NULL,
	description TEXT NOT NULL,
	own_profile INTEGER REFERENCES profile (id), -- the caller brings the vectors; NULL: the store's embedder makes them
	created_at  INTEGER NOT NULL,
	updated_at  INTEGER NOT NULL, retention INTEGER, retention_deletes INTEGER,
	UNIQUE (owner_id, name)
) STRICT;
CREATE TABLE project (
	id         INTEGER PRIMARY KEY,
	owner_id   INTEGER NOT NULL REFERENCES "users" (id),
	uid        TEXT NOT NULL, -- unique per owner, never global
	name       TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL, name_key TEXT NOT NULL DEFAULT '', retention INTEGER, retention_deletes INTEGER,
	UNIQUE (owner_id, uid)
) STRICT;
CREATE TABLE project_member (
	project_id INTEGER NOT NULL REFERENCES project (id) ON DELETE CASCADE,
	user_id    INTEGER NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
	role       TEXT NOT NULL CHECK (role IN ('reader', 'writer', 'owner')),
	created_at INTEGER NOT NULL,
	PRIMARY KEY (user_id, project_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX project_member_project ON project_member (project_id);
CREATE TABLE partition (
	id            INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id < 1 << 31),
	collection_id INTEGER NOT NULL REFERENCES collection (id) ON DELETE CASCADE,
	project_id    INTEGER REFERENCES project (id),
	next_passage  INTEGER NOT NULL DEFAULT 0,
	memories      INTEGER NOT NULL DEFAULT 0, -- the counts are kept by the triggers below
	passages      INTEGER NOT NULL DEFAULT 0
, bytes INTEGER NOT NULL DEFAULT 0, revisions INTEGER NOT NULL DEFAULT 0) STRICT;
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
, key TEXT, event_time INTEGER, rule_of INTEGER, expires_at INTEGER, valid_from INTEGER, valid_until INTEGER, supersedes TEXT) STRICT;
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
CREATE VIRTUAL TABLE passage_text USING fts5 (
	content, tags, content = '', contentless_delete = 1, tokenize = 'ascii'
);
CREATE TABLE change (
	seq       INTEGER PRIMARY KEY,
	memory_id INTEGER NOT NULL
) STRICT;
CREATE TRIGGER change_bounded AFTER INSERT ON change WHEN NEW.seq % 256 = 0 BEGIN
	DELETE FROM change WHERE seq <= NEW.seq - 65536;
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
CREATE TABLE external_identity (
	issuer     TEXT NOT NULL,
	subject    TEXT NOT NULL,
	user_id    INTEGER NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
	email      TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX external_identity_user ON external_identity (user_id);
CREATE TABLE preference (
	user_id    INTEGER PRIMARY KEY REFERENCES "users" (id) ON DELETE CASCADE,
	value      TEXT NOT NULL, -- JSON object
	updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE token (
	id           INTEGER PRIMARY KEY,
	uid          TEXT NOT NULL UNIQUE,
	user_id      INTEGER NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
	name         TEXT NOT NULL,
	hash         BLOB NOT NULL UNIQUE, -- SHA-256 of the token
	prefix       TEXT NOT NULL,        -- its first characters, to tell it from others
	scopes       TEXT NOT NULL,        -- JSON list
	projects     TEXT,                 -- JSON list of references; NULL: all
	created_at   INTEGER NOT NULL,
	expires_at   INTEGER,
	last_used_at INTEGER,
	revoked_at   INTEGER
, grant_id INTEGER REFERENCES oauth_grant (id) ON DELETE CASCADE, parent_id INTEGER REFERENCES token (id) ON DELETE CASCADE, session TEXT NOT NULL DEFAULT '', browser TEXT NOT NULL DEFAULT '', with_session INTEGER NOT NULL DEFAULT 0 CHECK (with_session IN (0, 1)), paused_at INTEGER) STRICT;
CREATE INDEX token_user ON token (user_id);
CREATE TABLE file (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	uid         TEXT NOT NULL UNIQUE,
	owner_id    INTEGER NOT NULL REFERENCES "users" (id),
	memory_id   INTEGER REFERENCES memory (id) ON DELETE SET NULL,
	project_id  INTEGER REFERENCES project (id), -- where it lies while it is linked to no memory
	filename    TEXT NOT NULL,
	mime_type   TEXT NOT NULL,
	size        INTEGER NOT NULL, -- bytes; of an arriving one: those announced, or those that are here if they are more
	sha256      BLOB NOT NULL,    -- of the whole file; empty while it arrives
	description TEXT NOT NULL,
	category    TEXT NOT NULL,
	created_at  INTEGER NOT NULL,
	updated_at  INTEGER NOT NULL  -- of an arriving one: when its last piece came
, state TEXT NOT NULL DEFAULT 'arriving' CHECK (state IN ('arriving', 'stored', 'leaving', 'trashed')), text_id INTEGER, text_state TEXT NOT NULL DEFAULT 'waiting'
	CHECK (text_state IN ('waiting', 'indexed', 'none', 'failed')), text_info TEXT NOT NULL DEFAULT '', text_places TEXT NOT NULL DEFAULT '') STRICT;
CREATE INDEX file_memory ON file (memory_id);
CREATE INDEX file_project ON file (project_id);
CREATE TABLE file_tag (
	file_id  INTEGER NOT NULL REFERENCES file (id) ON DELETE CASCADE,
	tag      TEXT NOT NULL,
	position INTEGER NOT NULL,
	PRIMARY KEY (file_id, tag)
) STRICT, WITHOUT ROWID;
CREATE TABLE file_chunk (
	id     INTEGER PRIMARY KEY,
	sha256 BLOB NOT NULL,
	data   BLOB NOT NULL
, object TEXT) STRICT;
CREATE TRIGGER file_unlinked BEFORE DELETE ON memory BEGIN
	UPDATE file SET memory_id = NULL, project_id = (SELECT project_id FROM partition WHERE id = OLD.partition_id)
		WHERE memory_id = OLD.id;
END;
CREATE TRIGGER file_unlinked_all BEFORE DELETE ON partition BEGIN
	UPDATE file SET memory_id = NULL, project_id = OLD.project_id
		WHERE memory_id IN (SELECT id FROM memory WHERE partition_id = OLD.id);
END;
CREATE TABLE oauth_client (
	id            INTEGER PRIMARY KEY,
	client_id     TEXT NOT NULL UNIQUE,
	kind          TEXT NOT NULL CHECK (kind IN ('admin', 'registered', 'document')), -- made by a user, by RFC 7591, by its own metadata document
	owner_id      INTEGER REFERENCES "users" (id) ON DELETE CASCADE, -- of kind admin
	name          TEXT NOT NULL,
	auth_method   TEXT NOT NULL CHECK (auth_method IN ('none', 'client_secret_basic', 'client_secret_post')),
	secret_hash   BLOB,          -- NULL with none
	redirect_uris TEXT NOT NULL, -- JSON list
	metadata      TEXT NOT NULL, -- JSON object: what else it registered
	created_at    INTEGER NOT NULL,
	updated_at    INTEGER NOT NULL,
	expires_at    INTEGER,       -- of kind document: when it is to be fetched again
	used_at       INTEGER,       -- when a user first consented to it; NULL: nobody has yet
	disabled_at   INTEGER        -- for good
, maker TEXT NOT NULL DEFAULT '') STRICT;
CREATE INDEX oauth_client_owner ON oauth_client (owner_id);
CREATE INDEX oauth_client_kind ON oauth_client (kind, updated_at);
CREATE TABLE oauth_grant (
	id           INTEGER PRIMARY KEY,
	uid          TEXT NOT NULL UNIQUE,
	client_id    INTEGER NOT NULL REFERENCES oauth_client (id) ON DELETE CASCADE,
	user_id      INTEGER NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
	scopes       TEXT NOT NULL, -- JSON list
	projects     TEXT,          -- JSON list of references; NULL: all
	resource     TEXT NOT NULL, -- RFC 8707, canonical; '': none was named
	created_at   INTEGER NOT NULL,
	last_used_at INTEGER,       -- when tokens were last given out; NULL: its code has not come back yet
	revoked_at   INTEGER
, refused TEXT, session TEXT NOT NULL DEFAULT '', paused_at INTEGER) STRICT;
CREATE INDEX oauth_grant_user ON oauth_grant (user_id);
CREATE INDEX oauth_grant_client ON oauth_grant (client_id);
CREATE TABLE oauth_code (
	hash         BLOB PRIMARY KEY,
	grant_id     INTEGER NOT NULL REFERENCES oauth_grant (id) ON DELETE CASCADE,
	redirect_uri TEXT NOT NULL,
	challenge    TEXT NOT NULL, -- RFC 7636, S256; '': none was sent
	created_at   INTEGER NOT NULL,
	expires_at   INTEGER NOT NULL,
	used_at      INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_code_grant ON oauth_code (grant_id);
CREATE INDEX oauth_code_expires ON oauth_code (expires_at);
CREATE TABLE oauth_token (
	hash       BLOB PRIMARY KEY,
	grant_id   INTEGER NOT NULL REFERENCES oauth_grant (id) ON DELETE CASCADE,
	created_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	rotated_at INTEGER -- when another one took its place
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_token_grant ON oauth_token (grant_id);
CREATE INDEX oauth_token_expires ON oauth_token (expires_at);
CREATE TABLE signing_key (
	id          INTEGER PRIMARY KEY,
	kid         TEXT NOT NULL UNIQUE,
	algorithm   TEXT NOT NULL,
	private_key BLOB NOT NULL, -- of Ed25519: the seed
	created_at  INTEGER NOT NULL,
	retired_at  INTEGER -- signs no more, and is kept until what it signed has expired
) STRICT;
CREATE UNIQUE INDEX signing_key_current ON signing_key (algorithm) WHERE retired_at IS NULL;
CREATE INDEX memory_do_dont ON memory (partition_id) WHERE classification IN ('do', 'dont');
CREATE TABLE session (
	id           INTEGER PRIMARY KEY,
	uid          TEXT NOT NULL UNIQUE,
	user_id      INTEGER NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
	hash         BLOB NOT NULL UNIQUE,
	user_agent   TEXT NOT NULL,
	created_at   INTEGER NOT NULL,
	last_used_at INTEGER NOT NULL,
	expires_at   INTEGER NOT NULL -- if it is not used again
, confirmed_at INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX session_user ON session (user_id);
CREATE INDEX session_expires ON session (expires_at);
CREATE TABLE invitation (
	id         INTEGER PRIMARY KEY,
	uid        TEXT NOT NULL UNIQUE,
	hash       BLOB NOT NULL UNIQUE,
	purpose    TEXT NOT NULL CHECK (purpose IN ('account', 'setup')),
	role       TEXT NOT NULL CHECK (role IN ('user', 'admin')),
	email      TEXT NOT NULL,
	note       TEXT NOT NULL,
	created_by INTEGER REFERENCES "users" (id) ON DELETE CASCADE, -- the admin on whose word it counts; NULL: the operator
	created_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	used_at    INTEGER,
	used_by    INTEGER REFERENCES "users" (id) ON DELETE SET NULL
) STRICT;
CREATE INDEX invitation_created_by ON invitation (created_by);
CREATE INDEX invitation_used_by ON invitation (used_by);
CREATE TABLE activity (
	id            INTEGER PRIMARY KEY,
	uid           TEXT NOT NULL UNIQUE,
	user_uid          TEXT NOT NULL, -- user.uid, or that of somebody who has stored nothing yet
	credential    TEXT NOT NULL CHECK (credential IN ('', 'token', 'client', 'session')),
	credential_id TEXT NOT NULL, -- '': no credential
	client        TEXT NOT NULL, -- what the program calls itself
	tool          TEXT NOT NULL, -- or "METHOD /pattern" of a route
	action        TEXT NOT NULL,
	project_id    INTEGER REFERENCES project (id) ON DELETE SET NULL, -- one that the user could see
	memory        TEXT NOT NULL, -- memory.uid; '': none. It may be gone
	file          TEXT NOT NULL, -- file.uid, likewise
	outcome       TEXT NOT NULL,
	started_at    INTEGER NOT NULL,
	duration      INTEGER NOT NULL, -- microseconds
	bytes         INTEGER NOT NULL  -- of the answer; 0: not known
, namespace TEXT NOT NULL DEFAULT '', hits INTEGER) STRICT;
CREATE INDEX activity_user ON activity (user_uid);
CREATE INDEX activity_started ON activity (started_at);
CREATE INDEX activity_project ON activity (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX token_grant ON token (grant_id);
CREATE INDEX memory_event ON memory (partition_id, event_type, state, importance, classification, rule_type) WHERE event_type IS NOT NULL;
CREATE TABLE row_hash (
	kind INTEGER NOT NULL, -- which table's
	id   INTEGER NOT NULL, -- the row, or what a set of rows belongs to
	hash BLOB NOT NULL,    -- 16 bytes; empty: the row was found to be damaged, and has been kept as it was
	PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE project_invitation (
	id           INTEGER PRIMARY KEY,
	uid          TEXT NOT NULL UNIQUE,
	project_id   INTEGER NOT NULL REFERENCES project (id) ON DELETE CASCADE,
	sender_id    INTEGER NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
	invited      TEXT NOT NULL, -- the name or id that the sender typed
	-- Who may accept it. NULL: there was no such user, the invitation was declined, or it was never delivered. The sender sees no difference.
	recipient_id INTEGER REFERENCES "users" (id) ON DELETE SET NULL,
	role         TEXT NOT NULL CHECK (role IN ('reader', 'writer', 'owner')),
	created_at   INTEGER NOT NULL,
	expires_at   INTEGER NOT NULL,
	UNIQUE (project_id, invited)
) STRICT;
CREATE INDEX project_invitation_sender ON project_invitation (sender_id);
CREATE INDEX project_invitation_recipient ON project_invitation (recipient_id, sender_id) WHERE recipient_id IS NOT NULL;
CREATE TABLE declined_invitation (
	id          INTEGER PRIMARY KEY,
	user_id     INTEGER NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
	sender_id   INTEGER NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
	project_id  INTEGER REFERENCES project (id) ON DELETE SET NULL,
	declined_at INTEGER NOT NULL
) STRICT;
CREATE INDEX declined_invitation_user ON declined_invitation (user_id, sender_id);
CREATE INDEX declined_invitation_sender ON declined_invitation (sender_id);
CREATE INDEX declined_invitation_project ON declined_invitation (project_id);
CREATE TABLE blocked_sender (
	user_id    INTEGER NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
	sender_id  INTEGER NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
	created_at INTEGER NOT NULL,
	PRIMARY KEY (user_id, sender_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX blocked_sender_sender ON blocked_sender (sender_id);
CREATE INDEX project_name ON project (owner_id, name_key);
CREATE TABLE project_alias (
	owner_id   INTEGER NOT NULL REFERENCES "users" (id), -- the project's
	name_key   TEXT NOT NULL,
	name       TEXT NOT NULL,
	project_id INTEGER NOT NULL REFERENCES project (id) ON DELETE CASCADE,
	created_at INTEGER NOT NULL, -- until when it was the project's name
	PRIMARY KEY (owner_id, name_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX project_alias_project ON project_alias (project_id, created_at);
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
CREATE INDEX token_parent ON token (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX token_session ON token (session) WHERE session <> '';
CREATE INDEX oauth_grant_session ON oauth_grant (session) WHERE session <> '';
CREATE INDEX oauth_client_maker ON oauth_client (maker) WHERE maker <> '';
CREATE TABLE trash (
	id               INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order of deletion
	uid              TEXT NOT NULL UNIQUE, -- of a memory or a file: its own id
	kind             TEXT NOT NULL CHECK (kind IN ('memory', 'file', 'project', 'collection')),
	item             TEXT NOT NULL, -- id of the memory, file or project; name of the collection
	title            TEXT NOT NULL, -- to recognize it by, bounded
	owner_id         INTEGER NOT NULL REFERENCES "users" (id), -- the owner of the place where it lay
	collection_id    INTEGER REFERENCES collection (id) ON DELETE SET NULL, -- of kind collection: the one that it goes back into; NULL: it is to be made
	project_id       INTEGER REFERENCES project (id) ON DELETE SET NULL, -- where it lay, or of kind project, as with collections
	collection       TEXT NOT NULL, -- name of the collection; '': none
	project          TEXT NOT NULL, -- id of the project; '': none
	project_name     TEXT NOT NULL,
	data             TEXT NOT NULL, -- JSON: what the project or collection was
	memories         INTEGER NOT NULL, -- that it holds
	size             INTEGER NOT NULL, -- bytes
	deleted_by       INTEGER NOT NULL REFERENCES "users" (id),
	deleted_through  TEXT NOT NULL,
	deleted_at       INTEGER NOT NULL,
	restorable_until INTEGER NOT NULL -- from then on it is erased, in as many transactions as that takes
, revisions INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX trash_owner ON trash (owner_id, restorable_until);
CREATE INDEX trash_project ON trash (project_id) WHERE project_id IS NOT NULL;
CREATE INDEX trash_collection ON trash (collection_id) WHERE collection_id IS NOT NULL;
CREATE INDEX trash_expires ON trash (restorable_until);
CREATE TABLE trash_item (
	id       INTEGER PRIMARY KEY,
	entry_id INTEGER NOT NULL REFERENCES trash (id) ON DELETE CASCADE,
	kind     TEXT NOT NULL CHECK (kind IN ('memory', 'revision', 'file')), -- file: one that lay in a deleted project, and still exists
	uid      TEXT NOT NULL, -- of the memory or file
	data     TEXT NOT NULL -- JSON, with a version
) STRICT;
CREATE INDEX trash_item_entry ON trash_item (entry_id, kind, id);
CREATE INDEX trash_item_uid ON trash_item (uid);
CREATE INDEX file_owner ON file (owner_id, state, size);
CREATE INDEX file_state ON file (state) WHERE state IN ('arriving', 'leaving');
CREATE TABLE "trash_link" (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	kind     TEXT NOT NULL CHECK (kind IN ('memory', 'file')),
	source   TEXT NOT NULL, -- id of the memory that links, or of the file that is linked to a memory
	target   TEXT NOT NULL, -- id of the memory
	position INTEGER NOT NULL,
	UNIQUE (source, target, kind)
) STRICT;
CREATE INDEX trash_link_target ON trash_link (target);
CREATE INDEX memory_active ON memory (partition_id, lower(event_type), updated_at, state, event_type)
	WHERE coalesce(lower(state), 'active') = 'active' AND length(event_type) > 0;
CREATE INDEX memory_tag_name ON memory_tag (lower(tag));
CREATE INDEX memory_module ON memory (lower(CASE WHEN json_valid(metadata) THEN CASE json_type(metadata, '$.module_name') WHEN 'text' THEN metadata ->> '$.module_name' END END), partition_id,
	CASE WHEN json_valid(metadata) THEN CASE json_type(metadata, '$.module_name') WHEN 'text' THEN metadata ->> '$.module_name' END END)
	WHERE CASE WHEN json_valid(metadata) THEN CASE json_type(metadata, '$.module_name') WHEN 'text' THEN metadata ->> '$.module_name' END END IS NOT NULL;
CREATE INDEX partition_place ON partition (collection_id, coalesce(project_id, 0));
CREATE UNIQUE INDEX project_invitation_delivered ON project_invitation (project_id, recipient_id) WHERE recipient_id IS NOT NULL;
CREATE TABLE turn (
	memory_id    INTEGER PRIMARY KEY REFERENCES memory (id) ON DELETE CASCADE,
	partition_id INTEGER NOT NULL, -- the memory's
	conversation INTEGER NOT NULL, -- a hash of its name
	at           INTEGER NOT NULL, -- when it was said
	speaker      TEXT NOT NULL     -- empty: not known
) STRICT;
CREATE INDEX turn_order ON turn (partition_id, conversation, at, memory_id);
CREATE UNIQUE INDEX memory_key ON memory (partition_id, key) WHERE key IS NOT NULL;
CREATE TABLE memory_own (
	partition_id INTEGER NOT NULL, -- the memory's
	key          TEXT NOT NULL,
	value        ANY NOT NULL,     -- booleans as 1 and 0
	memory_id    INTEGER NOT NULL,
	PRIMARY KEY (partition_id, key, value, memory_id)
) STRICT, WITHOUT ROWID;
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
CREATE INDEX memory_content ON memory (partition_id, octet_length(content), substr(content, -16));
CREATE UNIQUE INDEX memory_rule ON memory (rule_of, rule_type) WHERE rule_of IS NOT NULL;
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
CREATE INDEX memory_expires ON memory (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memory_expires_in ON memory (partition_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memory_valid_from ON memory (valid_from) WHERE valid_from IS NOT NULL;
CREATE INDEX memory_valid_until ON memory (valid_until) WHERE valid_until IS NOT NULL;
CREATE INDEX memory_supersedes ON memory (supersedes, partition_id) WHERE supersedes IS NOT NULL;
CREATE UNIQUE INDEX users_uid ON users (namespace, uid);
CREATE UNIQUE INDEX user_name ON users (namespace, name_key) WHERE name_key IS NOT NULL;
CREATE TRIGGER project_member_apart BEFORE INSERT ON project_member
	WHEN (SELECT namespace FROM users WHERE id = NEW.user_id)
		<> (SELECT o.namespace FROM project j JOIN users o ON o.id = j.owner_id WHERE j.id = NEW.project_id)
BEGIN SELECT RAISE(ABORT, 'a member of another namespace'); END;
CREATE TRIGGER project_invitation_apart BEFORE INSERT ON project_invitation
	WHEN (SELECT namespace FROM users WHERE id = NEW.recipient_id)
		<> (SELECT o.namespace FROM project j JOIN users o ON o.id = j.owner_id WHERE j.id = NEW.project_id)
BEGIN SELECT RAISE(ABORT, 'a recipient of another namespace'); END;
CREATE TRIGGER partition_apart BEFORE INSERT ON partition WHEN NEW.project_id IS NOT NULL
	AND (SELECT o.namespace FROM collection c JOIN users o ON o.id = c.owner_id WHERE c.id = NEW.collection_id)
		<> (SELECT o.namespace FROM project j JOIN users o ON o.id = j.owner_id WHERE j.id = NEW.project_id)
BEGIN SELECT RAISE(ABORT, 'a project of another namespace'); END;
CREATE TRIGGER users_stay_apart BEFORE UPDATE OF namespace ON users WHEN NEW.namespace <> OLD.namespace
BEGIN SELECT RAISE(ABORT, 'a user cannot move to another namespace'); END;
CREATE INDEX memory_valid_from_in ON memory (partition_id, valid_from) WHERE valid_from IS NOT NULL;
CREATE INDEX memory_valid_until_in ON memory (partition_id, valid_until) WHERE valid_until IS NOT NULL;
CREATE INDEX memory_supersedes_in ON memory (partition_id, supersedes) WHERE supersedes IS NOT NULL;
CREATE TABLE shared_state (
	key TEXT PRIMARY KEY,
	value BLOB NOT NULL,
	expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX shared_state_expires ON shared_state (expires_at);
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
CREATE INDEX file_tag_name ON file_tag (lower(tag));
CREATE TABLE file_object (
	key TEXT PRIMARY KEY,
	state TEXT NOT NULL CHECK (state IN ('arriving', 'stored', 'leaving')),
	size INTEGER NOT NULL,
	due_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX file_object_due ON file_object (due_at) WHERE state <> 'stored';
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
CREATE UNIQUE INDEX file_text ON file (text_id) WHERE text_id IS NOT NULL;
CREATE INDEX file_text_waiting ON file (owner_id, id) WHERE text_state = 'waiting' AND state = 'stored';
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
CREATE TRIGGER file_text_old AFTER UPDATE OF sha256 ON file
	WHEN OLD.sha256 <> NEW.sha256 AND NEW.text_state <> 'waiting' BEGIN
	DELETE FROM memory WHERE id = OLD.text_id;
	UPDATE file SET text_id = NULL, text_state = 'waiting', text_info = '', text_places = '' WHERE id = NEW.id;
END;
CREATE TRIGGER file_moved AFTER UPDATE OF partition_id ON memory WHEN OLD.partition_id <> NEW.partition_id BEGIN
	UPDATE file SET memory_id = NEW.id WHERE memory_id = NEW.id AND text_id IS NOT NULL;
END;
CREATE INDEX memory_updated ON memory (partition_id, updated_at, uid DESC, event_type, state, importance, classification, rule_type);
CREATE INDEX memory_created ON memory (partition_id, created_at, uid DESC);
CREATE TABLE audit (
	id            INTEGER PRIMARY KEY, -- its place in the chain, from 1, without gaps
	at            INTEGER NOT NULL,
	namespace     TEXT NOT NULL,
	actor         TEXT NOT NULL, -- users.uid of who did it; '': the operator
	via           TEXT NOT NULL, -- the way: 'server', 'command', 'upkeep'; '': a program that has the store open
	credential    TEXT NOT NULL, -- as in activity
	credential_id TEXT NOT NULL,
	action        TEXT NOT NULL,
	kind          TEXT NOT NULL, -- of the object
	object        TEXT NOT NULL, -- its id, or a hash of it if people choose it
	details       TEXT NOT NULL, -- a JSON object
	hash          BLOB NOT NULL
) STRICT;
CREATE INDEX users_uid_key ON users (namespace, uid_key);
CREATE TRIGGER users_id_free BEFORE INSERT ON users
	WHEN EXISTS (SELECT 1 FROM users o WHERE o.namespace = NEW.namespace AND o.name_key = NEW.uid_key AND o.uid <> NEW.uid)
BEGIN SELECT RAISE(ABORT, 'the id of a user is the name of another'); END;
CREATE TRIGGER users_name_free BEFORE INSERT ON users
	WHEN EXISTS (SELECT 1 FROM users o WHERE o.namespace = NEW.namespace AND o.uid_key = NEW.name_key AND o.uid <> NEW.uid)
BEGIN SELECT RAISE(ABORT, 'the name of a user is the id of another'); END;
CREATE TRIGGER users_name_stays_free BEFORE UPDATE OF name_key ON users
	WHEN NEW.name_key IS NOT OLD.name_key
		AND EXISTS (SELECT 1 FROM users o WHERE o.namespace = NEW.namespace AND o.uid_key = NEW.name_key AND o.uid <> NEW.uid)
BEGIN SELECT RAISE(ABORT, 'the name of a user is the id of another'); END;
CREATE INDEX activity_client ON activity (user_uid, client, started_at, namespace, credential, outcome, hits);
CREATE INDEX collection_retention ON collection (id) WHERE retention IS NOT NULL;
CREATE INDEX project_retention ON project (id) WHERE retention IS NOT NULL;
