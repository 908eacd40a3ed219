-- A project has one rule of each type: rule_of is the project of a rule, and unique with its type. Where an older file
-- holds several, the one that changed last counts, as before; the others keep no mark.
ALTER TABLE memory ADD COLUMN rule_of INTEGER;
UPDATE memory SET rule_of = (SELECT p.project_id FROM partition p WHERE p.id = memory.partition_id)
WHERE rule_type IS NOT NULL AND id = (SELECT m.id FROM memory m JOIN partition q ON q.id = m.partition_id
	WHERE m.rule_type = memory.rule_type
		AND q.project_id = (SELECT p.project_id FROM partition p WHERE p.id = memory.partition_id)
	ORDER BY m.updated_at DESC, m.id DESC LIMIT 1);
CREATE UNIQUE INDEX memory_rule ON memory (rule_of, rule_type) WHERE rule_of IS NOT NULL;
