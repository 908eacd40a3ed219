-- Listings by time, the newest first, and counts of what fits a filter, are read from one index, without going to the memories.
DROP INDEX memory_updated;
CREATE INDEX memory_updated ON memory (partition_id, updated_at DESC, uid, event_type, state, importance, classification, rule_type);
DROP INDEX memory_created;
CREATE INDEX memory_created ON memory (partition_id, created_at DESC, uid);
DROP INDEX memory_event;
CREATE INDEX memory_event ON memory (partition_id, event_type, state, importance, classification, rule_type) WHERE event_type IS NOT NULL;
