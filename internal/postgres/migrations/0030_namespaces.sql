-- Several applications in one database, each with users of its own: an id and a name are unique within a namespace. The
-- empty one is where all users have been until now, and where the server works.
ALTER TABLE users ADD COLUMN namespace text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE users DROP CONSTRAINT users_uid_key;
CREATE UNIQUE INDEX users_uid ON users (namespace, uid);
DROP INDEX user_name;
CREATE UNIQUE INDEX user_name ON users (namespace, name_key) WHERE name_key IS NOT NULL;

ALTER TABLE activity ADD COLUMN namespace text COLLATE "C" NOT NULL DEFAULT '';

-- All people of a project are of its owner's namespace, and so are those invited to it; what lies in a project lies in a
-- collection of its owner, or of another user of the namespace in older stores.
CREATE FUNCTION namespace_of(owner bigint) RETURNS text STABLE LANGUAGE sql AS $$
	SELECT u.namespace FROM users u WHERE u.id = owner
$$;
CREATE FUNCTION namespace_of_project(project bigint) RETURNS text STABLE LANGUAGE sql AS $$
	SELECT u.namespace FROM project j JOIN users u ON u.id = j.owner_id WHERE j.id = project
$$;

CREATE FUNCTION member_apart() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF namespace_of(NEW.user_id) <> namespace_of_project(NEW.project_id) THEN
		RAISE EXCEPTION 'a member of another namespace' USING ERRCODE = 'check_violation';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER project_member_apart BEFORE INSERT ON project_member FOR EACH ROW EXECUTE FUNCTION member_apart();

CREATE FUNCTION recipient_apart() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF namespace_of(NEW.recipient_id) <> namespace_of_project(NEW.project_id) THEN
		RAISE EXCEPTION 'a recipient of another namespace' USING ERRCODE = 'check_violation';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER project_invitation_apart BEFORE INSERT ON project_invitation FOR EACH ROW
	WHEN (NEW.recipient_id IS NOT NULL) EXECUTE FUNCTION recipient_apart();

CREATE FUNCTION partition_apart() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF namespace_of((SELECT c.owner_id FROM collection c WHERE c.id = NEW.collection_id))
			<> namespace_of_project(NEW.project_id) THEN
		RAISE EXCEPTION 'a project of another namespace' USING ERRCODE = 'check_violation';
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER partition_apart BEFORE INSERT ON partition FOR EACH ROW WHEN (NEW.project_id IS NOT NULL)
	EXECUTE FUNCTION partition_apart();

CREATE FUNCTION users_stay_apart() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'a user cannot move to another namespace' USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER users_stay_apart BEFORE UPDATE OF namespace ON users FOR EACH ROW
	WHEN (NEW.namespace <> OLD.namespace) EXECUTE FUNCTION users_stay_apart();
