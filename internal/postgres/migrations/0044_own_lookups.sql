-- In a store with keys of users, sealed metadata end in a line with their lookups: the same object with keyed hashes in
-- place of keys and values. The index of own metadata has these. Sealed metadata without that line, from before, are
-- read, as are those that are too long.
CREATE FUNCTION lookups_of(metadata text) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT pg_catalog.substr(metadata, strpos(metadata, chr(10)) + 1)
$$;

INSERT INTO memory_own (partition_id, key, value, memory_id)
	SELECT partition_id, '', '{"long": true}', id FROM memory WHERE metadata COLLATE "C" < chr(2) ON CONFLICT DO NOTHING;

CREATE OR REPLACE FUNCTION memory_own_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP <> 'INSERT' THEN
		DELETE FROM memory_own WHERE memory_id = OLD.id;
	END IF;
	IF TG_OP <> 'DELETE' AND NEW.metadata <> '{}' THEN
		IF lookups_of(NEW.metadata) COLLATE "C" >= chr(2) AND octet_length(lookups_of(NEW.metadata))
				<= least(2000, coalesce((SELECT s.value FROM setting s WHERE s.key = 'indexed_metadata'), 4096)) THEN
			INSERT INTO memory_own (partition_id, key, value, memory_id)
				SELECT NEW.partition_id, o.key, o.value, NEW.id FROM own_of(lookups_of(NEW.metadata)) o;
		ELSE
			INSERT INTO memory_own (partition_id, key, value, memory_id)
				VALUES (NEW.partition_id, '', '{"long": true}', NEW.id);
		END IF;
	END IF;
	RETURN NULL;
END $$;
