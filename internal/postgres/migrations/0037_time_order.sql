-- The newest memories come last, so that pages are filled: entries that are added at the front leave them half empty.
-- What is asked for, the newest first and then by id, is the same order from the other end.
DROP INDEX memory_updated;
CREATE INDEX memory_updated
	ON memory (partition_id, updated_at, uid DESC, event_type, state, importance, classification, rule_type);
DROP INDEX memory_created;
CREATE INDEX memory_created ON memory (partition_id, created_at, uid DESC);
