-- The OAuth grant through which an application made an MCP token, which then ends with the grant; NULL: the user made it, or the operator.

ALTER TABLE token ADD COLUMN grant_id INTEGER REFERENCES oauth_grant (id) ON DELETE CASCADE;
CREATE INDEX token_grant ON token (grant_id);
