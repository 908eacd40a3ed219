-- Files are found by their tags: those of a module, and checkpoints among many.
CREATE INDEX file_tag_name ON file_tag (lower(tag));
