-- A reference to a user is a name or an id, so a name must not be the id of another user. The keys of users of before are
-- computed in Go, which folds names.
ALTER TABLE users ADD COLUMN uid_key text COLLATE "C"; -- uid, folded; NULL while a row is written whose id may be another's name
CREATE INDEX users_uid_key ON users (namespace, uid_key);
CREATE FUNCTION users_id_free() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM users o WHERE o.namespace = NEW.namespace AND o.name_key = NEW.uid_key AND o.uid <> NEW.uid) THEN
		RAISE EXCEPTION 'the id of a user is the name of another' USING ERRCODE = 'check_violation';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER users_id_free BEFORE INSERT ON users FOR EACH ROW WHEN (NEW.uid_key IS NOT NULL)
	EXECUTE FUNCTION users_id_free();

CREATE FUNCTION users_name_free() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM users o WHERE o.namespace = NEW.namespace AND o.uid_key = NEW.name_key AND o.uid <> NEW.uid) THEN
		RAISE EXCEPTION 'the name of a user is the id of another' USING ERRCODE = 'check_violation';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER users_name_free BEFORE INSERT ON users FOR EACH ROW WHEN (NEW.name_key IS NOT NULL)
	EXECUTE FUNCTION users_name_free();
CREATE TRIGGER users_name_stays_free BEFORE UPDATE OF name_key ON users FOR EACH ROW
	WHEN (NEW.name_key IS DISTINCT FROM OLD.name_key) EXECUTE FUNCTION users_name_free();
