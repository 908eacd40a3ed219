-- Since when the user has paused a token, or the access of an application; NULL: it is not paused.
ALTER TABLE token ADD COLUMN paused_at bigint;
ALTER TABLE oauth_grant ADD COLUMN paused_at bigint;

-- How many memories a search found; NULL: the call was none.
ALTER TABLE activity ADD COLUMN hits bigint;
