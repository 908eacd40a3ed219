-- An index of vectors by the extension pgvector, 0.8 or newer, for partitions too large for the index in memory: their
-- searches find the nearest passages in the database. Optional. Run it as the owner of the tables, after each upgrade,
-- and after a change of the embedding model if its vectors have other dimensions, and restart the servers.
--
-- The servers fill it in the background. passage_near has the vectors of large partitions, with 16 bits per number;
-- passage.vector stays what counts.
CREATE EXTENSION IF NOT EXISTS vector;

-- From how many passages on a partition is indexed: 0 for all partitions.
DO $$
BEGIN
	IF to_regprocedure('near_from()') IS NULL THEN
		CREATE FUNCTION near_from() RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 20000::bigint';
	END IF;
END $$;

-- The partitions that are indexed, up to a passage.
CREATE TABLE IF NOT EXISTS near_partition (
	partition_id bigint PRIMARY KEY REFERENCES partition (id) ON DELETE CASCADE,
	dimensions   bigint NOT NULL,
	upto         bigint NOT NULL -- the passages up to this one have rows in passage_near, those with a vector at least
);

DO $$
DECLARE
	extension text := (SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
		WHERE e.extname = 'vector');
	size bigint;
BEGIN
	EXECUTE format('CREATE TABLE IF NOT EXISTS passage_near (
		id        bigint PRIMARY KEY REFERENCES passage (id) ON DELETE CASCADE,
		memory_id bigint NOT NULL, -- the passage''s
		embedding %s.halfvec -- NULL: the vector of the passage has changed, or is missing
	)', extension);
	CREATE INDEX IF NOT EXISTS passage_near_changed ON passage_near (id) WHERE embedding IS NULL;
	FOR size IN SELECT DISTINCT dimensions FROM profile WHERE dimensions BETWEEN 1 AND 4000 LOOP
		EXECUTE format('CREATE INDEX IF NOT EXISTS passage_near_%1$s ON passage_near
			USING hnsw ((embedding::%2$s.halfvec(%1$s)) %2$s.halfvec_ip_ops)
			WHERE %2$s.vector_dims(embedding) = %1$s', size, extension);
	END LOOP;
END $$;

CREATE OR REPLACE FUNCTION passage_near_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE passage_near SET embedding = NULL WHERE id = NEW.id AND embedding IS NOT NULL;
	RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER passage_near_changed AFTER UPDATE OF vector ON passage FOR EACH ROW
	WHEN (OLD.vector IS DISTINCT FROM NEW.vector) EXECUTE FUNCTION passage_near_changed();
