-- Contents of files in object storage. Each object that may exist has a row: it is written before the object, and goes
-- after it. So nothing that a crash leaves behind is forgotten.
CREATE TABLE file_object (
	key text COLLATE "C" PRIMARY KEY,
	state text COLLATE "C" NOT NULL CHECK (state IN ('arriving', 'stored', 'leaving')),
	size bigint NOT NULL,
	due_at bigint NOT NULL
);
CREATE INDEX file_object_due ON file_object (due_at) WHERE state <> 'stored';

ALTER TABLE file_chunk ADD COLUMN object text COLLATE "C";
CREATE UNIQUE INDEX file_chunk_object ON file_chunk (object) WHERE object IS NOT NULL;

CREATE FUNCTION file_chunk_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO file_object (key, state, size, due_at)
		SELECT d.object, 'leaving', 0, 0 FROM deleted d WHERE d.object IS NOT NULL
		ON CONFLICT (key) DO UPDATE SET state = 'leaving', due_at = 0;
	RETURN NULL;
END $$;
CREATE TRIGGER file_chunk_gone AFTER DELETE ON file_chunk REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT
	EXECUTE FUNCTION file_chunk_gone();

CREATE FUNCTION file_chunk_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO file_object (key, state, size, due_at)
		SELECT o.object, 'leaving', 0, 0 FROM old_rows o JOIN new_rows n ON n.id = o.id
			WHERE o.object IS NOT NULL AND o.object IS DISTINCT FROM n.object
		ON CONFLICT (key) DO UPDATE SET state = 'leaving', due_at = 0;
	RETURN NULL;
END $$;
CREATE TRIGGER file_chunk_moved AFTER UPDATE ON file_chunk REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION file_chunk_moved();
