-- What a context and a module's state are gathered from: few memories among many, found without going through the others.
-- Words are compared without regard to case. The conditions of the partial indexes must appear in queries as they are here.

-- The memories of one event type that are active: an identity, conversations, a project's main memory.
CREATE INDEX memory_active ON memory (partition_id, event_type COLLATE NOCASE, updated_at, state)
	WHERE ifnull(state, 'active') = 'active' COLLATE NOCASE AND length(event_type) > 0;

CREATE INDEX memory_do_dont ON memory (partition_id) WHERE classification IN ('do', 'dont');

-- Metadata that is damaged names no module.
CREATE INDEX memory_module ON memory (iif(json_valid(metadata), json_extract(metadata, '$.module_name'), NULL) COLLATE NOCASE)
	WHERE iif(json_valid(metadata), json_extract(metadata, '$.module_name'), NULL) IS NOT NULL;

CREATE INDEX memory_tag_name ON memory_tag (tag COLLATE NOCASE);
