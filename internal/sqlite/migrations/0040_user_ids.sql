-- A reference to a user is a name or an id, so a name must not be the id of another user. The keys of users of before are
-- computed in Go, which folds names.
ALTER TABLE users ADD COLUMN uid_key TEXT; -- uid, folded; NULL while a row is written whose id may be another's name
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
