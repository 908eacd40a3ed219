-- When a memory ends (it is gone from then on), when what it says is true, and which memory of its place it replaces.
ALTER TABLE memory ADD COLUMN expires_at INTEGER;
ALTER TABLE memory ADD COLUMN valid_from INTEGER;
ALTER TABLE memory ADD COLUMN valid_until INTEGER;
ALTER TABLE memory ADD COLUMN supersedes TEXT; -- uid: it stays what it is when that memory goes to the trash and comes back
CREATE INDEX memory_expires ON memory (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memory_expires_in ON memory (partition_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memory_valid_from ON memory (valid_from) WHERE valid_from IS NOT NULL;
CREATE INDEX memory_valid_until ON memory (valid_until) WHERE valid_until IS NOT NULL;
CREATE INDEX memory_supersedes ON memory (supersedes, partition_id) WHERE supersedes IS NOT NULL;
