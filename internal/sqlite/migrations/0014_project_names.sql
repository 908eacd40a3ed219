-- Names of projects are compared folded, and former names still lead to a project. SQL cannot fold: the program fills name_key in the
-- transaction of this migration. Projects of one owner whose names fold alike stay; the exact name, or the id, tells them apart.
ALTER TABLE project ADD COLUMN name_key TEXT NOT NULL DEFAULT '';
DROP INDEX project_name;
CREATE INDEX project_name ON project (owner_id, name_key);

-- One name leads to one project of an owner.
CREATE TABLE project_alias (
	owner_id   INTEGER NOT NULL REFERENCES user (id), -- the project's
	name_key   TEXT NOT NULL,
	name       TEXT NOT NULL,
	project_id INTEGER NOT NULL REFERENCES project (id) ON DELETE CASCADE,
	created_at INTEGER NOT NULL, -- until when it was the project's name
	PRIMARY KEY (owner_id, name_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX project_alias_project ON project_alias (project_id, created_at);
