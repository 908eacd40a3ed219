-- What lies in a project belongs to the project: it lies in a collection of the project's owner, and files are the owner's. Until now
-- members had it in collections of their own. Their parts of projects become the owner's as they are, so that no passage moves; where
-- the owner has one for the same place already, there are two from now on.

DROP INDEX partition_place;
CREATE INDEX partition_place ON partition (collection_id, ifnull(project_id, 0));

-- Empty parts are not worth a collection of their owner's.
DELETE FROM partition WHERE memories = 0 AND project_id IS NOT NULL
	AND (SELECT owner_id FROM collection WHERE id = partition.collection_id) <> (SELECT owner_id FROM project WHERE id = partition.project_id)
	AND NOT EXISTS (SELECT 1 FROM memory WHERE partition_id = partition.id) AND NOT EXISTS (SELECT 1 FROM memory_revision WHERE partition_id = partition.id);

CREATE TABLE misplaced (
	partition_id  INTEGER PRIMARY KEY,
	owner_id      INTEGER NOT NULL, -- of the project
	collection_id INTEGER NOT NULL, -- the member's
	name          TEXT NOT NULL,
	own_profile   INTEGER,
	created_at    INTEGER NOT NULL,
	updated_at    INTEGER NOT NULL
) STRICT;
INSERT INTO misplaced
	SELECT p.id, j.owner_id, c.id, c.name, c.own_profile, c.created_at, c.updated_at
	FROM partition p JOIN collection c ON c.id = p.collection_id JOIN project j ON j.id = p.project_id WHERE c.owner_id <> j.owner_id;

-- Vectors of different kinds do not lie in one collection, so where the name is taken by another kind, it gets a number.
UPDATE misplaced SET name = substr(name, 1, 100) || ' (' || collection_id || ')'
	WHERE EXISTS (SELECT 1 FROM collection c WHERE c.owner_id = misplaced.owner_id AND c.name = misplaced.name AND c.own_profile IS NOT misplaced.own_profile)
	OR EXISTS (SELECT 1 FROM misplaced o WHERE o.owner_id = misplaced.owner_id AND o.name = misplaced.name AND o.own_profile IS NOT misplaced.own_profile
		AND o.collection_id < misplaced.collection_id);
INSERT INTO collection (owner_id, name, description, own_profile, created_at, updated_at)
	SELECT owner_id, name, '', own_profile, min(created_at), max(updated_at) FROM misplaced WHERE true GROUP BY owner_id, name ON CONFLICT DO NOTHING;
UPDATE partition SET collection_id = (SELECT c.id FROM misplaced o JOIN collection c ON c.owner_id = o.owner_id AND c.name = o.name WHERE o.partition_id = partition.id)
	WHERE id IN (SELECT partition_id FROM misplaced);

-- An identity that a member stored must not become that of the owner.
UPDATE memory SET state = 'archived' WHERE partition_id IN (SELECT partition_id FROM misplaced) AND event_type = 'IDENTITY' COLLATE NOCASE;
DROP TABLE misplaced;

UPDATE file SET owner_id = (SELECT j.owner_id FROM project j WHERE j.id = file.project_id)
	WHERE state = 'stored' AND memory_id IS NULL AND project_id IN (SELECT id FROM project);
UPDATE file SET owner_id = (SELECT c.owner_id FROM memory m JOIN partition p ON p.id = m.partition_id JOIN collection c ON c.id = p.collection_id WHERE m.id = file.memory_id)
	WHERE state = 'stored' AND memory_id IN (SELECT m.id FROM memory m JOIN partition p ON p.id = m.partition_id JOIN collection c ON c.id = p.collection_id);
