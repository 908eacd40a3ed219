-- The second wall: a role that does not own the tables sees and changes of memories, files, trash and preferences what
-- the caller of its transaction may, and nothing if the transaction names none. Run it as the owner, after each upgrade,
-- and after vectors.sql.
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
DROP FUNCTION IF EXISTS wall_partitions() CASCADE;
CREATE OR REPLACE FUNCTION wall_partitions(writable boolean) RETURNS bigint[] STABLE LANGUAGE sql AS $$
	SELECT coalesce(array_agg(s.id), '{}') FROM (
		SELECT p.id FROM partition p WHERE p.project_id = ANY ((SELECT wall_projects(writable))::bigint[])
		UNION SELECT p.id FROM collection c JOIN partition p ON p.collection_id = c.id
			WHERE c.owner_id = wall_caller() AND p.project_id IS NULL AND wall_limit() IS NULL) s
$$;

-- Whether the caller may change a file.
CREATE OR REPLACE FUNCTION wall_file(file_id bigint) RETURNS boolean STABLE LANGUAGE sql AS $$
	SELECT EXISTS (SELECT 1 FROM file f LEFT JOIN memory m ON m.id = f.memory_id WHERE f.id = file_id
		AND CASE WHEN f.memory_id IS NOT NULL THEN m.partition_id = ANY (wall_partitions(true))
			WHEN f.project_id IS NULL THEN f.owner_id = wall_caller() AND wall_limit() IS NULL
			ELSE f.project_id = ANY (wall_projects(true)) END)
$$;

-- For each table the condition for seeing a row, and the one for changing it, which is the same unless it is given. In
-- them, PLACES and PROJECTS are the partitions and the projects that the caller may see, or change.
DO $$
DECLARE
	t record;
	visible text;
	writable text;
BEGIN
	FOR t IN SELECT * FROM (VALUES
		('memory', 'partition_id = ANY (PLACES)', NULL),
		('memory_revision', 'partition_id = ANY (PLACES) AND EXISTS (SELECT 1 FROM memory m WHERE m.id = memory_id)',
			'EXISTS (SELECT 1 FROM memory m WHERE m.id = memory_id AND m.partition_id = ANY (PLACES))'),
		('memory_own', 'partition_id = ANY (PLACES)', NULL),
		('segmented', 'partition_id = ANY (PLACES)', NULL),
		('segment', 'partition_id = ANY (PLACES)', NULL),
		('segment_stale', 'partition_id = ANY (PLACES)', NULL),
		('turn', 'partition_id = ANY (PLACES)', NULL),
		('passage', '(id / 4294967296) = ANY (PLACES)', NULL),
		('passage_text', '(id / 4294967296) = ANY (PLACES)', NULL),
		('passage_term', '(passage_id / 4294967296) = ANY (PLACES)', NULL),
		('passage_near', '(id / 4294967296) = ANY (PLACES)', NULL), -- of vectors.sql
		('memory_tag', 'EXISTS (SELECT 1 FROM memory m WHERE m.id = memory_id AND m.partition_id = ANY (PLACES))', NULL),
		('file', 'CASE WHEN memory_id IS NOT NULL
				THEN EXISTS (SELECT 1 FROM memory m WHERE m.id = memory_id AND m.partition_id = ANY (PLACES))
			WHEN project_id IS NULL THEN owner_id = (SELECT wall_caller()) AND (SELECT wall_limit()) IS NULL
			ELSE project_id = ANY (PROJECTS) END', NULL),
		('file_tag', 'EXISTS (SELECT 1 FROM file f WHERE f.id = file_id)', 'wall_file(file_id)'),
		('file_chunk', 'EXISTS (SELECT 1 FROM file f WHERE f.id = file_chunk.id / 16777216)', 'wall_file(id / 16777216)'),
		('trash', 'owner_id = (SELECT wall_caller()) AND (SELECT wall_limit()) IS NULL
			OR kind IN (''memory'', ''file'') AND project_id = ANY ((SELECT wall_projects(true))::bigint[])', NULL),
		('trash_item', 'EXISTS (SELECT 1 FROM trash e WHERE e.id = entry_id)', NULL),
		('preference', 'user_id = (SELECT wall_caller()) AND (SELECT wall_limit()) IS NULL', NULL)
	) AS v (name, visible, writable)
	LOOP
		CONTINUE WHEN to_regclass(quote_ident(current_schema()) || '.' || t.name) IS NULL;
		visible := replace(replace(t.visible, 'PLACES', '(SELECT wall_partitions(false))::bigint[]'),
			'PROJECTS', '(SELECT wall_projects(false))::bigint[]');
		writable := replace(replace(coalesce(t.writable, t.visible), 'PLACES',
			'(SELECT wall_partitions(true))::bigint[]'), 'PROJECTS', '(SELECT wall_projects(true))::bigint[]');
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t.name);
		EXECUTE format('DROP POLICY IF EXISTS wall ON %I', t.name);
		EXECUTE format('DROP POLICY IF EXISTS wall_insert ON %I', t.name);
		EXECUTE format('DROP POLICY IF EXISTS wall_update ON %I', t.name);
		EXECUTE format('DROP POLICY IF EXISTS wall_delete ON %I', t.name);
		EXECUTE format('CREATE POLICY wall ON %I FOR SELECT USING ((SELECT wall_open()) OR %s)', t.name, visible);
		EXECUTE format('CREATE POLICY wall_insert ON %I FOR INSERT WITH CHECK ((SELECT wall_open()) OR %s)', t.name,
			writable);
		EXECUTE format('CREATE POLICY wall_update ON %I FOR UPDATE USING ((SELECT wall_open()) OR %s)', t.name, writable);
		EXECUTE format('CREATE POLICY wall_delete ON %I FOR DELETE USING ((SELECT wall_open()) OR %s)', t.name, writable);
	END LOOP;
END $$;
