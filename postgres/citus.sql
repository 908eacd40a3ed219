-- A store on Citus, 13 or newer: all tables of a schema lie on one worker. Run it on the coordinator as a superuser,
-- with the schema as the search path: after the first start, after each upgrade, and after a worker was added. Restart
-- the servers after it. docs/scale.md says what holds then.
SET citus.enable_unsafe_triggers = on; -- all that they name is on the node that runs them

DO $$
DECLARE
	store text := current_schema();
	t record;
	source text;
	dropped text[] := '{}';
BEGIN
	IF NOT EXISTS (SELECT 1 FROM pg_dist_schema WHERE schemaid = store::regnamespace) THEN
		-- These read the table that is being distributed.
		FOR t IN SELECT tgname AS name, pg_get_triggerdef(oid) AS def FROM pg_trigger
			WHERE tgrelid = 'users'::regclass AND tgname LIKE 'users\_%free' LOOP
			EXECUTE format('DROP TRIGGER %I ON users', t.name);
			dropped := dropped || t.def;
		END LOOP;
		PERFORM citus_schema_distribute(store::regnamespace);
		FOREACH source IN ARRAY dropped LOOP
			EXECUTE source;
		END LOOP;
	END IF;
	-- Citus brings functions to the workers, but not operators.
	PERFORM run_command_on_workers(format('DO $d$ BEGIN
			IF to_regoperator(%1$L) IS NULL THEN
				CREATE OPERATOR %2$I.>> (leftarg = bigint, rightarg = bigint, function = %2$I.shifted);
				CREATE OPERATOR %2$I.+ (rightarg = text, function = %2$I.unchanged);
			END IF;
		END $d$', format('%I.>>(bigint,bigint)', store), store));

	-- The log of changes has the numbers of transactions of the worker. When the schema has moved to another one, the
	-- first change there begins a new log.
	ALTER TABLE change_floor ADD COLUMN IF NOT EXISTS node bigint NOT NULL DEFAULT 0;
	CREATE OR REPLACE FUNCTION change_stamped() RETURNS trigger LANGUAGE plpgsql AS $f$
	DECLARE
		here bigint := (SELECT system_identifier FROM pg_control_system());
	BEGIN
		IF here <> (SELECT f.node FROM change_floor f) THEN
			DELETE FROM change;
			UPDATE change_floor SET node = here, xid = '0';
		END IF;
		NEW.seq := nextval(TG_TABLE_SCHEMA || '.change_seq_seq');
		NEW.xid := pg_current_xact_id();
		RETURN NEW;
	END $f$;
	CREATE OR REPLACE TRIGGER change_stamped BEFORE INSERT ON change FOR EACH ROW EXECUTE FUNCTION change_stamped();

	-- A statement over a transition table and another table fails on Citus: the functions get the rows as arrays.
	FOR t IN SELECT p.proname AS name, p.prosrc AS source, g.tgrelid::regclass AS of, array_remove(
			ARRAY[g.tgoldtable, g.tgnewtable], NULL) AS transitions
		FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid
		WHERE p.pronamespace = store::regnamespace AND NOT g.tgisinternal
			AND num_nonnulls(g.tgoldtable, g.tgnewtable) > 0 AND p.prosrc !~ '_array\M' LOOP
		source := regexp_replace(t.source, '^\s*DECLARE', '');
		FOR i IN 1 .. cardinality(t.transitions) LOOP
			source := regexp_replace(source, format('\m(FROM|JOIN) %s\M(?! [a-z]\M)', t.transitions[i]),
				format('\1 unnest(%1$s_array) AS %1$s', t.transitions[i]), 'g');
			source := regexp_replace(source, format('\m(FROM|JOIN) %s ([a-z])\M', t.transitions[i]),
				format('\1 unnest(%1$s_array) AS \2', t.transitions[i]), 'g');
			source := format(E'\n\t%1$s_array %2$s[] := ARRAY(SELECT r FROM %1$s r);', t.transitions[i], t.of) || source;
		END LOOP;
		EXECUTE format('CREATE OR REPLACE FUNCTION %I() RETURNS trigger LANGUAGE plpgsql AS %L', t.name,
			'DECLARE' || source);
	END LOOP;

	-- What runs on a worker finds the tables by their names. With a search path of its own, PostgreSQL does not put the
	-- text of a function into the statement that calls it, past Citus, where the tables are empty. Functions that name no
	-- table stay as they are.
	FOR t IN SELECT p.oid::regprocedure AS name FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
		WHERE p.pronamespace = store::regnamespace AND p.prokind = 'f' AND (l.lanname = 'plpgsql'
			OR p.prosrc ~ (SELECT format('\m(json_of|%s)\M', string_agg(tablename, '|')) FROM pg_tables
				WHERE schemaname = store)) LOOP
		EXECUTE format('ALTER FUNCTION %s SET search_path = %I', t.name, store);
	END LOOP;
END $$;
