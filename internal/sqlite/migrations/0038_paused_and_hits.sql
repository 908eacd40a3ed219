-- Since when the user has paused a token, or the access of an application; NULL: it is not paused.
ALTER TABLE token ADD COLUMN paused_at INTEGER;
ALTER TABLE oauth_grant ADD COLUMN paused_at INTEGER;

-- How many memories a search found; NULL: the call was none.
ALTER TABLE activity ADD COLUMN hits INTEGER;
