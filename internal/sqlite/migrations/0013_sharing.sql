-- Sharing needs consent. project_member holds accepted members only; who is invited is here, and nothing that decides what a
-- user sees reads these tables.

CREATE TABLE project_invitation (
	id           INTEGER PRIMARY KEY,
	uid          TEXT NOT NULL UNIQUE,
	project_id   INTEGER NOT NULL REFERENCES project (id) ON DELETE CASCADE,
	sender_id    INTEGER NOT NULL REFERENCES user (id) ON DELETE CASCADE,
	invited      TEXT NOT NULL, -- the name or id that the sender typed
	-- Who may accept it. NULL: there was no such user, the invitation was declined, or it was never delivered. The sender sees no difference.
	recipient_id INTEGER REFERENCES user (id) ON DELETE SET NULL,
	role         TEXT NOT NULL CHECK (role IN ('reader', 'writer', 'owner')),
	created_at   INTEGER NOT NULL,
	expires_at   INTEGER NOT NULL,
	UNIQUE (project_id, invited)
) STRICT;
CREATE INDEX project_invitation_sender ON project_invitation (sender_id);
CREATE INDEX project_invitation_recipient ON project_invitation (recipient_id, sender_id) WHERE recipient_id IS NOT NULL;

-- What a user has declined lately: for a time, no further invitation to the project is delivered.
CREATE TABLE declined_invitation (
	id          INTEGER PRIMARY KEY,
	user_id     INTEGER NOT NULL REFERENCES user (id) ON DELETE CASCADE,
	sender_id   INTEGER NOT NULL REFERENCES user (id) ON DELETE CASCADE,
	project_id  INTEGER REFERENCES project (id) ON DELETE SET NULL,
	declined_at INTEGER NOT NULL
) STRICT;
CREATE INDEX declined_invitation_user ON declined_invitation (user_id, sender_id);
CREATE INDEX declined_invitation_sender ON declined_invitation (sender_id);
CREATE INDEX declined_invitation_project ON declined_invitation (project_id);

-- Whose invitations a user does not receive.
CREATE TABLE blocked_sender (
	user_id    INTEGER NOT NULL REFERENCES user (id) ON DELETE CASCADE,
	sender_id  INTEGER NOT NULL REFERENCES user (id) ON DELETE CASCADE,
	created_at INTEGER NOT NULL,
	PRIMARY KEY (user_id, sender_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX blocked_sender_sender ON blocked_sender (sender_id);
