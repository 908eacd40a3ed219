-- "user" is reserved in standard SQL, and in PostgreSQL a column of that name would silently be the database's own user.

ALTER TABLE user RENAME TO users;
ALTER TABLE activity RENAME COLUMN user TO user_uid;
