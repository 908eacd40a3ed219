-- What a credential was made through, and ends with. Sessions are deleted when they end, so that they are named by their ids.

ALTER TABLE token ADD COLUMN parent_id INTEGER REFERENCES token (id) ON DELETE CASCADE; -- the token through which it was made
ALTER TABLE token ADD COLUMN session TEXT NOT NULL DEFAULT '';                         -- the sign-in in which it was made; '': none
ALTER TABLE token ADD COLUMN browser TEXT NOT NULL DEFAULT '';                         -- what the browser of that called itself
ALTER TABLE token ADD COLUMN with_session INTEGER NOT NULL DEFAULT 0 CHECK (with_session IN (0, 1)); -- ends however the sign-in ends
CREATE INDEX token_parent ON token (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX token_session ON token (session) WHERE session <> '';

ALTER TABLE oauth_grant ADD COLUMN session TEXT NOT NULL DEFAULT ''; -- the sign-in in which it was allowed; '': not known
CREATE INDEX oauth_grant_session ON oauth_grant (session) WHERE session <> '';

ALTER TABLE oauth_client ADD COLUMN maker TEXT NOT NULL DEFAULT ''; -- of kind admin: 'token ID' or 'grant ID' through which it was made; '': by a person
CREATE INDEX oauth_client_maker ON oauth_client (maker) WHERE maker <> '';

ALTER TABLE session ADD COLUMN confirmed_at INTEGER NOT NULL DEFAULT 0; -- when the person last showed who they are; 0: at created_at
