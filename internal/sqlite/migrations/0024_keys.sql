-- A caller's own key for a memory: unique within its place, the part of a collection that lies in one project or in none.
-- And when what it tells of happened, apart from when it was stored.
ALTER TABLE memory ADD COLUMN key TEXT;
ALTER TABLE memory ADD COLUMN event_time INTEGER;
CREATE UNIQUE INDEX memory_key ON memory (partition_id, key) WHERE key IS NOT NULL;
