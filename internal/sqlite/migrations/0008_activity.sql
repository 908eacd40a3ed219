-- Calls of tools and routes: who, with what, on what, when, how long, and how it ended. Nothing of what was stored or searched for.
-- Age and number are bounded; no row is ever changed.

CREATE TABLE activity (
	id            INTEGER PRIMARY KEY,
	uid           TEXT NOT NULL UNIQUE,
	user          TEXT NOT NULL, -- user.uid, or that of somebody who has stored nothing yet
	credential    TEXT NOT NULL CHECK (credential IN ('', 'token', 'client', 'session')),
	credential_id TEXT NOT NULL, -- '': no credential
	client        TEXT NOT NULL, -- what the program calls itself
	tool          TEXT NOT NULL, -- or "METHOD /pattern" of a route
	action        TEXT NOT NULL,
	project_id    INTEGER REFERENCES project (id) ON DELETE SET NULL, -- one that the user could see
	memory        TEXT NOT NULL, -- memory.uid; '': none. It may be gone
	file          TEXT NOT NULL, -- file.uid, likewise
	outcome       TEXT NOT NULL,
	started_at    INTEGER NOT NULL,
	duration      INTEGER NOT NULL, -- microseconds
	bytes         INTEGER NOT NULL  -- of the answer; 0: not known
) STRICT;
CREATE INDEX activity_user ON activity (user);
CREATE INDEX activity_client ON activity (user, client, started_at);
CREATE INDEX activity_started ON activity (started_at);
CREATE INDEX activity_project ON activity (project_id) WHERE project_id IS NOT NULL;
