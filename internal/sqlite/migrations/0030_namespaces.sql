-- Several applications in one file, each with users of its own: an id and a name are unique within a namespace. The
-- empty one is where all users have been until now, and where the server works.

-- SQLite cannot drop the UNIQUE of users.uid, and a copy of the table would need foreign keys to be off. So the index
-- that the constraint made becomes an ordinary one, which is then dropped; no row is touched.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'TEXT NOT NULL UNIQUE', 'TEXT NOT NULL') WHERE type = 'table' AND name = 'users';
UPDATE sqlite_schema SET name = 'users_uid', sql = 'CREATE INDEX users_uid ON users (uid)'
	WHERE type = 'index' AND tbl_name = 'users' AND sql IS NULL;
PRAGMA writable_schema = RESET;
DROP INDEX users_uid;

ALTER TABLE users ADD COLUMN namespace TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX users_uid ON users (namespace, uid);
DROP INDEX user_name;
CREATE UNIQUE INDEX user_name ON users (namespace, name_key) WHERE name_key IS NOT NULL;

ALTER TABLE activity ADD COLUMN namespace TEXT NOT NULL DEFAULT ''; -- of the user

-- All people of a project are of its owner's namespace, and so are those invited to it.
CREATE TRIGGER project_member_apart BEFORE INSERT ON project_member
	WHEN (SELECT namespace FROM users WHERE id = NEW.user_id)
		<> (SELECT o.namespace FROM project j JOIN users o ON o.id = j.owner_id WHERE j.id = NEW.project_id)
BEGIN SELECT RAISE(ABORT, 'a member of another namespace'); END;
CREATE TRIGGER project_invitation_apart BEFORE INSERT ON project_invitation
	WHEN (SELECT namespace FROM users WHERE id = NEW.recipient_id)
		<> (SELECT o.namespace FROM project j JOIN users o ON o.id = j.owner_id WHERE j.id = NEW.project_id)
BEGIN SELECT RAISE(ABORT, 'a recipient of another namespace'); END;
-- What lies in a project lies in a collection of its owner, or of another user of the namespace in older files.
CREATE TRIGGER partition_apart BEFORE INSERT ON partition WHEN NEW.project_id IS NOT NULL
	AND (SELECT o.namespace FROM collection c JOIN users o ON o.id = c.owner_id WHERE c.id = NEW.collection_id)
		<> (SELECT o.namespace FROM project j JOIN users o ON o.id = j.owner_id WHERE j.id = NEW.project_id)
BEGIN SELECT RAISE(ABORT, 'a project of another namespace'); END;
CREATE TRIGGER users_stay_apart BEFORE UPDATE OF namespace ON users WHEN NEW.namespace <> OLD.namespace
BEGIN SELECT RAISE(ABORT, 'a user cannot move to another namespace'); END;
