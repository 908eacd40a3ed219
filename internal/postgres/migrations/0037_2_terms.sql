-- The terms of a passage that goes with its partition: the row of word_partition may go first.
CREATE OR REPLACE FUNCTION text_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM passage_term p USING (SELECT d.id, t AS term
			FROM deleted d LEFT JOIN word_partition w ON w.partition_id = d.id / 4294967296,
				LATERAL terms_of(d.content, d.tags) t
			WHERE CASE WHEN w.partition_id IS NOT NULL THEN d.id <= w.upto
				ELSE NOT EXISTS (SELECT 1 FROM partition q WHERE q.id = d.id / 4294967296) END) x
		WHERE p.passage_id = x.id AND p.term = x.term;
	RETURN NULL;
END $$;
DELETE FROM passage_term t WHERE NOT EXISTS (SELECT 1 FROM passage_text x WHERE x.id = t.passage_id);

DROP FUNCTION passages_with(text[], bigint, bigint);
