-- How long memories stay after their last change, in a collection and in a project: microseconds; NULL: for good.
ALTER TABLE collection ADD COLUMN retention INTEGER;
ALTER TABLE collection ADD COLUMN retention_deletes INTEGER; -- 1: they are deleted for good then; NULL: they go to the trash
ALTER TABLE project ADD COLUMN retention INTEGER;
ALTER TABLE project ADD COLUMN retention_deletes INTEGER; -- as in collection
CREATE INDEX collection_retention ON collection (id) WHERE retention IS NOT NULL;
CREATE INDEX project_retention ON project (id) WHERE retention IS NOT NULL;
