-- The second wall: a role that does not own the tables sees of memories, files and trash what the caller of its
-- transaction may see, and nothing if the transaction names none. Run it as the owner, after each upgrade, and after
-- vectors.sql.
CREATE OR REPLACE FUNCTION wall_caller() RETURNS bigint STABLE LANGUAGE sql AS $$
	SELECT nullif(nullif(current_setting('souvenir.caller', true), ''), 'server')::bigint
$$;
CREATE OR REPLACE FUNCTION wall_open() RETURNS boolean STABLE LANGUAGE sql AS $$
	SELECT coalesce(current_setting('souvenir.caller', true), '') = 'server'
$$;
-- The projects to which the caller is limited; NULL: to none.
CREATE OR REPLACE FUNCTION wall_limit() RETURNS bigint[] STABLE LANGUAGE sql AS $$
	SELECT nullif(current_setting('souvenir.projects', true), '')::bigint[]
$$;
CREATE OR REPLACE FUNCTION wall_projects(writable boolean) RETURNS bigint[] STABLE LANGUAGE sql AS $$
	SELECT coalesce(array_agg(s.id), '{}') FROM (
		SELECT j.id FROM project j WHERE j.owner_id = wall_caller()
		UNION SELECT m.project_id FROM project_member m
			WHERE m.user_id = wall_caller() AND (NOT writable OR m.role IN ('writer', 'owner'))) s
	WHERE wall_limit() IS NULL OR s.id = ANY (wall_limit())
$$;
CREATE OR REPLACE FUNCTION wall_partitions() RETURNS bigint[] STABLE LANGUAGE sql AS $$
	SELECT coalesce(array_agg(s.id), '{}') FROM (
		SELECT p.id FROM partition p WHERE p.project_id = ANY ((SELECT wall_projects(false))::bigint[])
		UNION SELECT p.id FROM collection c JOIN partition p ON p.collection_id = c.id
			WHERE c.owner_id = wall_caller() AND p.project_id IS NULL AND wall_limit() IS NULL) s
$$;

DO $$
DECLARE
	t record;
BEGIN
	FOR t IN SELECT * FROM (VALUES
		('memory', 'partition_id = ANY ((SELECT wall_partitions())::bigint[])'),
		('memory_revision', 'partition_id = ANY ((SELECT wall_partitions())::bigint[])
			AND EXISTS (SELECT 1 FROM memory m WHERE m.id = memory_id)'),
		('memory_own', 'partition_id = ANY ((SELECT wall_partitions())::bigint[])'),
		('segmented', 'partition_id = ANY ((SELECT wall_partitions())::bigint[])'),
		('segment', 'partition_id = ANY ((SELECT wall_partitions())::bigint[])'),
		('segment_stale', 'partition_id = ANY ((SELECT wall_partitions())::bigint[])'),
		('turn', 'partition_id = ANY ((SELECT wall_partitions())::bigint[])'),
		('passage', '(id / 4294967296) = ANY ((SELECT wall_partitions())::bigint[])'),
		('passage_text', '(id / 4294967296) = ANY ((SELECT wall_partitions())::bigint[])'),
		('passage_term', '(passage_id / 4294967296) = ANY ((SELECT wall_partitions())::bigint[])'),
		('memory_tag', 'EXISTS (SELECT 1 FROM memory m WHERE m.id = memory_id)'),
		('file', 'CASE WHEN memory_id IS NOT NULL THEN EXISTS (SELECT 1 FROM memory m WHERE m.id = memory_id)
			WHEN project_id IS NULL THEN owner_id = (SELECT wall_caller()) AND (SELECT wall_limit()) IS NULL
			ELSE project_id = ANY ((SELECT wall_projects(false))::bigint[]) END'),
		('file_tag', 'EXISTS (SELECT 1 FROM file f WHERE f.id = file_id)'),
		('file_chunk', 'EXISTS (SELECT 1 FROM file f WHERE f.id = file_chunk.id / 16777216)'),
		('trash', 'owner_id = (SELECT wall_caller()) AND (SELECT wall_limit()) IS NULL
			OR kind IN (''memory'', ''file'') AND project_id = ANY ((SELECT wall_projects(true))::bigint[])'),
		('trash_item', 'EXISTS (SELECT 1 FROM trash e WHERE e.id = entry_id)'),
		('passage_near', '(id / 4294967296) = ANY ((SELECT wall_partitions())::bigint[])') -- of vectors.sql
	) AS v (name, visible)
	LOOP
		CONTINUE WHEN to_regclass(quote_ident(current_schema()) || '.' || t.name) IS NULL;
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t.name);
		EXECUTE format('DROP POLICY IF EXISTS wall ON %I', t.name);
		EXECUTE format('CREATE POLICY wall ON %I USING ((SELECT wall_open()) OR %s) WITH CHECK (true)', t.name, t.visible);
	END LOOP;
END $$;
