-- What searches leave out is looked up in the partitions that they search: one user's replaced memories cost others
-- nothing. memory_expires_in is such an index already.
CREATE INDEX memory_valid_from_in ON memory (partition_id, valid_from) WHERE valid_from IS NOT NULL;
CREATE INDEX memory_valid_until_in ON memory (partition_id, valid_until) WHERE valid_until IS NOT NULL;
CREATE INDEX memory_supersedes_in ON memory (partition_id, supersedes) WHERE supersedes IS NOT NULL;
