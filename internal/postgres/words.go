package postgres

import (
	"context"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// Words is full text in tables of the schema: the terms of each passage (passage_text), and for each term its passages
// (passage_term). A term of a partition is a range of its key. Only passages up to word_partition.upto have rows there,
// which Maintain adds, and triggers keep; the terms of later ones are read from passage_text.
func (tx *Tx) Words() db.Words { return words{tx} }

type words struct{ *Tx }

// Put overwrites, whether or not the passage has terms.
func (w words) Put(passage int64, content, tags string, _ bool) error {
	length := len(strings.Fields(content)) + len(strings.Fields(tags))
	return w.Queue(`INSERT INTO passage_text (id, content, tags, length) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET content = excluded.content, tags = excluded.tags, length = excluded.length`,
		passage, content, tags, length)
}

func (w words) Drop(passages ...int64) error {
	if len(passages) == 0 {
		return w.usable()
	}
	_, err := w.Exec(`DELETE FROM passage_text WHERE id IN `+db.Integers, db.List(passages))
	return err
}

func (w words) Clear() error {
	_, err := w.Exec(`DELETE FROM passage_text`)
	return err
}

// matching has a row for each of some terms in each passage of a range; its parameters are ?1 to ?3.
var matching = withTerms(`?1`, `?2`, `?3`)

// withTerms is matching with other parameters. A function in the schema would not become a part of the statement.
func withTerms(terms, first, last string) string {
	terms = `(SELECT terms_of(e, '') FROM jsonb_array_elements_text(list_json(` + terms + `)) e)`
	return `(SELECT i.term, i.passage_id, i.times FROM passage_term i WHERE i.term IN ` + terms + `
			AND i.passage_id BETWEEN ` + first + ` AND ` + last + `
		UNION ALL SELECT n.term, x.id, count(*)
			FROM passage_text x LEFT JOIN word_partition w ON w.partition_id = x.id / 4294967296,
				LATERAL terms_of(x.content, x.tags) n (term)
			WHERE x.id BETWEEN greatest(` + first + `, (SELECT o.upto + 1 FROM word_partition o
					WHERE o.partition_id = ` + first + ` / 4294967296)) AND ` + last + `
				AND x.id > coalesce(w.upto, 0) AND n.term IN ` + terms + `
			GROUP BY n.term, x.id) t`
}

// sought returns the argument for terms; ones that no text can have are left out.
func sought(terms []string) string {
	var possible []string
	for _, term := range terms {
		if term != "" && !strings.ContainsAny(term, "\x00 ") {
			possible = append(possible, term)
		}
	}
	return db.List(possible)
}

func (w words) Count(in db.Range, terms []string) (n int, err error) {
	err = w.QueryRow(`SELECT count(DISTINCT t.passage_id) FROM `+matching,
		sought(terms), in.First, in.Last).Scan(&n)
	return n, err
}

// Frequencies reads them from the tables of full text.
func (w words) Frequencies(in db.Range, passages []int64, terms []string, fn func(db.Frequency) error) error {
	return w.Tx.Each(func(row db.Rows) error {
		var f db.Frequency
		if err := row.Scan(&f.Passage, &f.Memory, &f.Start, &f.Length, &f.Term, &f.Times, &f.Terms); err != nil {
			return err
		}
		return fn(f)
	}, `WITH wanted AS MATERIALIZED (SELECT id FROM `+integers(`?1`)+` w (id))
		SELECT p.id, p.memory_id, p.start, p.length, t.place, t.times, x.length
		FROM (SELECT q.place - 1 AS place, t.passage_id, t.times
			FROM (SELECT (SELECT terms_of(q.term, '')) AS term, q.place
					FROM jsonb_array_elements_text(list_json(?2)) WITH ORDINALITY AS q (term, place)) q
				JOIN `+withTerms(`?2`, `?3`, `?4`)+` ON t.term = q.term) t
		JOIN wanted w ON w.id = t.passage_id JOIN passage p ON p.id = w.id JOIN passage_text x ON x.id = w.id`,
		db.List(passages), db.List(terms), in.First, in.Last)
}

func (w words) CountMemories(in db.Range, terms []string, limit int) (n int, err error) {
	err = w.QueryRow(`SELECT count(*) FROM (SELECT DISTINCT p.memory_id FROM `+matching+`
		JOIN passage p ON p.id = t.passage_id LIMIT ?4) m`,
		sought(terms), in.First, in.Last, limit).Scan(&n)
	return n, err
}

// Best ranks by BM25, with the parameters of SQLite's FTS5 and the statistics of the range alone: k1 = 1.2, b = 0.75.
func (w words) Best(in db.Range, terms []string, limit int) ([]int64, error) {
	return db.Column[int64](w.Tx, `WITH found AS MATERIALIZED (
			SELECT t.term, t.passage_id, t.times FROM `+matching+`),
		whole AS MATERIALIZED (
			SELECT count(*) AS passages, greatest(avg(length), 1)::float8 AS length FROM passage_text
			WHERE id BETWEEN ?2 AND ?3),
		rarity AS (
			SELECT f.term, greatest(ln((w.passages - count(*) + 0.5) / (count(*) + 0.5)), 0.000001)::float8 AS idf
			FROM found f JOIN whole w ON true GROUP BY f.term, w.passages)
		SELECT f.passage_id FROM found f JOIN rarity r ON r.term = f.term JOIN passage_text x ON x.id = f.passage_id
			JOIN whole w ON true
		GROUP BY f.passage_id
		ORDER BY sum(r.idf * f.times * 2.2 / (f.times + 1.2 * (0.25 + 0.75 * x.length / w.length))) DESC, f.passage_id
		LIMIT ?4`, sought(terms), in.First, in.Last, limit)
}

func (w words) Each(fn func(passage int64, column string, offset int, term string) error) error {
	ids, err := db.Column[int64](w.Tx, `SELECT id FROM passage_text`)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := fn(id, "", 0, ""); err != nil {
			return err
		}
	}
	return db.Stream(w.Tx, func(row db.Rows) error {
		var id int64
		var content, tags string
		if err := row.Scan(&id, &content, &tags); err != nil {
			return err
		}
		for _, column := range []struct{ name, terms string }{{"content", content}, {"tags", tags}} {
			for offset, term := range strings.Fields(column.terms) {
				if err := fn(id, column.name, offset, term); err != nil {
					return err
				}
			}
		}
		return nil
	}, `SELECT id, content, tags FROM passage_text`)
}

const (
	// mostUnindexed is how many passages of a partition may be read for their terms before the index of words gets them.
	mostUnindexed = 1000
	// wordsAtOnce is how many passages a transaction adds to it.
	wordsAtOnce = 500
	// indexing is the key of the lock under which one process at a time adds them.
	indexing = 0x53757670
)

// maintainWords brings the index of words up to date if much is missing from it.
func (d *DB) maintainWords(ctx context.Context, wait bool) error {
	var due []int64
	err := d.Read(ctx, func(tx db.Tx) (err error) {
		due, err = db.Column[int64](tx, `SELECT p.id FROM partition p LEFT JOIN word_partition w ON w.partition_id = p.id
			WHERE p.passages >= ?1 AND (SELECT count(*) FROM (SELECT FROM passage_text x
				WHERE x.id > coalesce(w.upto, p.id << 32) AND x.id < (p.id + 1) << 32 LIMIT ?1) a) >= ?1
			ORDER BY p.id`, mostUnindexed)
		return err
	})
	for _, id := range due {
		for more := true; more && err == nil; {
			err = d.Write(db.Yielding(ctx), func(tx db.Tx) (err error) {
				more, err = indexWords(tx, id, wait)
				return err
			})
		}
	}
	return err
}

// indexWords adds the terms of some passages of a partition to the index. It reports whether there may be more to do.
func indexWords(tx db.Tx, partition int64, wait bool) (more bool, err error) {
	if alone, err := locked(tx, indexing, wait); err != nil || !alone {
		return false, err
	}
	first, last := partition<<32, (partition+1)<<32-1
	if _, err := tx.Exec(`INSERT INTO word_partition (partition_id, upto) VALUES (?, ?)
		ON CONFLICT (partition_id) DO NOTHING`, partition, first-1); err != nil {
		return false, err
	}
	var upto, next int64
	err = tx.QueryRow(`SELECT w.upto, coalesce((SELECT max(id) FROM (SELECT x.id FROM passage_text x
		WHERE x.id > w.upto AND x.id <= ?2 ORDER BY x.id LIMIT ?3) n), 0) FROM word_partition w WHERE w.partition_id = ?1`,
		partition, last, wordsAtOnce).Scan(&upto, &next)
	if err != nil || next == 0 {
		return false, err
	}
	if _, err := tx.Exec(`INSERT INTO passage_term (term, passage_id, times) SELECT t, x.id, count(*)
		FROM passage_text x, LATERAL terms_of(x.content, x.tags) t WHERE x.id > ? AND x.id <= ? GROUP BY t, x.id`,
		upto, next); err != nil {
		return false, err
	}
	_, err = tx.Exec(`UPDATE word_partition SET upto = ? WHERE partition_id = ?`, next, partition)
	return true, err
}
