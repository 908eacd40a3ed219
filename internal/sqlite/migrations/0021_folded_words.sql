-- Words that are compared without regard to case are folded by lower, which every engine has, rather than by a collation
-- of SQLite's own. Conditions of partial indexes must appear in queries as they are here.

DROP INDEX memory_active;
CREATE INDEX memory_active ON memory (partition_id, lower(event_type), updated_at, state, event_type)
	WHERE coalesce(lower(state), 'active') = 'active' AND length(event_type) > 0;

DROP INDEX memory_tag_name;
CREATE INDEX memory_tag_name ON memory_tag (lower(tag));

-- The module that a memory names in its metadata. Damaged metadata names none.
DROP INDEX memory_module;
CREATE INDEX memory_module ON memory (lower(CASE WHEN json_valid(metadata) THEN CASE json_type(metadata, '$.module_name') WHEN 'text' THEN metadata ->> '$.module_name' END END), partition_id,
	CASE WHEN json_valid(metadata) THEN CASE json_type(metadata, '$.module_name') WHEN 'text' THEN metadata ->> '$.module_name' END END)
	WHERE CASE WHEN json_valid(metadata) THEN CASE json_type(metadata, '$.module_name') WHEN 'text' THEN metadata ->> '$.module_name' END END IS NOT NULL;
