-- The index of words (passage_term) is filled in the background, for partitions with many passages, as far as
-- word_partition says. The terms of the passages after that are read from passage_text: a row and an index entry for
-- each term of each passage cost more than half of the space, and a fifth of the time of a store.
CREATE TABLE word_partition (
	partition_id bigint PRIMARY KEY REFERENCES partition (id) ON DELETE CASCADE,
	upto bigint NOT NULL -- a passage
);
INSERT INTO word_partition (partition_id, upto) SELECT id, id * 4294967296 + next_passage - 1 FROM partition
	WHERE next_passage > 0;

CREATE FUNCTION text_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO passage_term (term, passage_id, times) SELECT t, a.id, count(*)
		FROM added a JOIN word_partition w ON w.partition_id = a.id / 4294967296 AND a.id <= w.upto,
			LATERAL terms_of(a.content, a.tags) t
		GROUP BY t, a.id;
	RETURN NULL;
END $$;

CREATE FUNCTION text_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM passage_term p USING (SELECT d.id, t AS term
			FROM deleted d JOIN word_partition w ON w.partition_id = d.id / 4294967296 AND d.id <= w.upto,
				LATERAL terms_of(d.content, d.tags) t) x
		WHERE p.passage_id = x.id AND p.term = x.term;
	RETURN NULL;
END $$;

DROP TRIGGER text_changed ON passage_text;
CREATE OR REPLACE FUNCTION text_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM passage_term p USING (SELECT d.id, t AS term
			FROM deleted d JOIN word_partition w ON w.partition_id = d.id / 4294967296 AND d.id <= w.upto,
				LATERAL terms_of(d.content, d.tags) t) x
		WHERE p.passage_id = x.id AND p.term = x.term;
	INSERT INTO passage_term (term, passage_id, times) SELECT t, a.id, count(*)
		FROM added a JOIN word_partition w ON w.partition_id = a.id / 4294967296 AND a.id <= w.upto,
			LATERAL terms_of(a.content, a.tags) t
		GROUP BY t, a.id;
	RETURN NULL;
END $$;
CREATE TRIGGER text_added AFTER INSERT ON passage_text REFERENCING NEW TABLE AS added FOR EACH STATEMENT
	EXECUTE FUNCTION text_added();
CREATE TRIGGER text_deleted AFTER DELETE ON passage_text REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT
	EXECUTE FUNCTION text_deleted();
CREATE TRIGGER text_changed AFTER UPDATE ON passage_text REFERENCING OLD TABLE AS deleted NEW TABLE AS added
	FOR EACH STATEMENT EXECUTE FUNCTION text_changed();

-- The passages of a range that have some terms, and how often.
CREATE FUNCTION passages_with(terms text[], first bigint, last bigint)
	RETURNS TABLE (term text, passage_id bigint, times bigint) STABLE LANGUAGE sql AS $$
	SELECT t.term, t.passage_id, t.times FROM passage_term t
		WHERE t.term = ANY (terms) AND t.passage_id BETWEEN first AND last
	UNION ALL
	SELECT e.term, x.id, count(*)
		FROM passage_text x LEFT JOIN word_partition w ON w.partition_id = x.id / 4294967296,
			LATERAL terms_of(x.content, x.tags) e (term)
		WHERE x.id BETWEEN greatest(first,
				(SELECT o.upto + 1 FROM word_partition o WHERE o.partition_id = first / 4294967296)) AND last
			AND x.id > coalesce(w.upto, 0) AND e.term = ANY (terms)
		GROUP BY e.term, x.id
$$;
