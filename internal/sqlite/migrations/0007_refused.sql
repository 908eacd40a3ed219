-- What a client asked for and the user did not allow: where the same client asks again, it is not taken for an oversight.

ALTER TABLE oauth_grant ADD COLUMN refused TEXT; -- JSON list of scopes; NULL: nothing
