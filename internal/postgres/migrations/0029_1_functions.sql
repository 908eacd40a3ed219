-- The schema of a store, as the migrations of SQLite (internal/sqlite/migrations) make it up to this number: the
-- same tables and columns. Times are microseconds since 1970-01-01 UTC. `id` never leaves the store; what callers
-- see is `uid`. Texts have the collation "C": they are ordered by their bytes, and lower folds ASCII only.

-- Every write locks it: all of them may run at once, but for one that was undone several times and now runs alone.
CREATE TABLE write_turn ();

-- The object in metadata; NULL if they are damaged.
CREATE FUNCTION json_of(metadata text) RETURNS jsonb IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
	v jsonb;
BEGIN
	IF metadata = '{}' THEN
		RETURN '{}';
	END IF;
	v := metadata::jsonb;
	RETURN CASE WHEN jsonb_typeof(v) = 'object' THEN v END;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
	RETURN NULL;
END $$;

-- The module that metadata name. An index has it: it calls no function of this schema, which a restore could not
-- find.
CREATE FUNCTION module_of(metadata text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
DECLARE
	v jsonb;
BEGIN
	IF strpos(metadata, 'module_name') = 0 AND strpos(metadata, '\') = 0 THEN
		RETURN NULL;
	END IF;
	v := metadata::jsonb -> 'module_name';
	RETURN CASE WHEN jsonb_typeof(v) = 'string' THEN v #>> '{}' END;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
	RETURN NULL;
END $$;

-- The values in metadata, and the elements of lists; booleans as 1 and 0.
CREATE FUNCTION values_of(metadata text) RETURNS TABLE (key text, value jsonb, kind text) STABLE LANGUAGE sql AS $$
	SELECT k.key, CASE WHEN e.value = 'true' THEN '1' WHEN e.value = 'false' THEN '0' ELSE e.value END,
		jsonb_typeof(e.value)
	FROM jsonb_each(coalesce(json_of(metadata), '{}')) k, LATERAL jsonb_array_elements(
		CASE jsonb_typeof(k.value) WHEN 'array' THEN k.value ELSE jsonb_build_array(k.value) END) e
$$;

-- What the table memory_own has of metadata: for a key that is set without a text, number or boolean the value {}.
CREATE FUNCTION own_of(metadata text) RETURNS TABLE (key text, value jsonb) STABLE LANGUAGE sql AS $$
	SELECT DISTINCT k.key, CASE WHEN e.value = 'true' THEN '1' WHEN e.value = 'false' THEN '0'
		WHEN jsonb_typeof(e.value) IN ('string', 'number') THEN e.value ELSE '{}' END
	FROM jsonb_each(coalesce(json_of(metadata), '{}')) k, LATERAL jsonb_array_elements(CASE
		WHEN k.value = '[]' THEN '[null]'
		WHEN jsonb_typeof(k.value) = 'array' THEN k.value
		ELSE jsonb_build_array(k.value) END) e
	WHERE k.value <> 'null'
$$;

-- Length bytes of a text from the one that start counts, from 1.
CREATE FUNCTION bytes_of(content text, start bigint, length bigint) RETURNS bytea IMMUTABLE LANGUAGE sql AS $$
	SELECT substr(convert_to(content, 'UTF8'), start::int, length::int)
$$;

-- A list of texts or numbers that a statement gets. Texts with U+0000 are not stored: they become others of that kind.
CREATE FUNCTION list_json(list text) RETURNS jsonb IMMUTABLE LANGUAGE sql AS $$
	SELECT CASE WHEN strpos(list, '\u0000') > 0
		THEN regexp_replace(list, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\udbff\\udfff', 'g') ELSE list END::jsonb
$$;

-- Parameters are integers of 64 bits, also where PostgreSQL has functions and operators of 32 bits alone.
CREATE FUNCTION substr(content text, start bigint, length bigint) RETURNS text IMMUTABLE LANGUAGE sql AS $$
	SELECT pg_catalog.substr(content, start::int, length::int)
$$;
CREATE FUNCTION shifted(n bigint, by bigint) RETURNS bigint IMMUTABLE LANGUAGE sql AS $$ SELECT n >> by::int $$;
CREATE OPERATOR >> (leftarg = bigint, rightarg = bigint, function = shifted);

-- +text is the text, as +n is the number.
CREATE FUNCTION unchanged(content text) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT content $$;
CREATE OPERATOR + (rightarg = text, function = unchanged);

-- A JSON list of texts, [] for none.
CREATE FUNCTION list_text(list text[]) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT array_to_json(list)::text $$;
CREATE AGGREGATE list_of(text) (sfunc = array_append, stype = text[], initcond = '{}', finalfunc = list_text);
