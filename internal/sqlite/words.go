package sqlite

import (
	"errors"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// Words is full text by FTS5 (https://www.sqlite.org/fts5.html).
func (tx *Tx) Words() db.Words { return words{tx} }

type words struct{ *Tx }

func (w words) Put(passage int64, content, tags string) error {
	_, err := w.Exec(`INSERT INTO passage_text (rowid, content, tags) VALUES (?, ?, ?)`, passage, content, tags)
	return err
}

func (w words) Drop(passages ...int64) error {
	for _, id := range passages {
		if _, err := w.Exec(`DELETE FROM passage_text WHERE rowid = ?`, id); err != nil {
			return err
		}
	}
	return nil
}

func (w words) Clear() error {
	_, err := w.Exec(`INSERT INTO passage_text (passage_text) VALUES ('delete-all')`)
	return err
}

// tidyPages is how many pages one step of Tidy merges.
const tidyPages = 500

// Tidy merges the segments of the index, in which dropped terms remain until then: section 6.8.
func (w words) Tidy(first bool) (more bool, err error) {
	pages := tidyPages
	if first {
		pages = -tidyPages // begin anew, with all segments
	}
	before, err := w.changed()
	if err != nil {
		return false, err
	}
	if _, err := w.Exec(`INSERT INTO passage_text (passage_text, rank) VALUES ('merge', ?)`, pages); err != nil {
		return false, err
	}
	after, err := w.changed()
	return after-before >= 2, err // fewer: nothing was merged
}

// changed returns how many rows the connection has changed, including changes by triggers.
func (w words) changed() (n int, err error) {
	err = w.QueryRow(`SELECT total_changes()`).Scan(&n)
	return n, err
}

func (w words) Count(in db.Range, terms []string) (n int, err error) {
	match := text.Match(terms)
	if match == "" {
		return 0, nil
	}
	err = w.QueryRow(`SELECT count(*) FROM passage_text WHERE passage_text MATCH ? AND rowid BETWEEN ? AND ?`,
		match, in.First, in.Last).Scan(&n)
	return n, err
}

func (w words) CountMemories(in db.Range, terms []string, limit int) (n int, err error) {
	match := text.Match(terms)
	if match == "" {
		return 0, nil
	}
	err = w.QueryRow(`SELECT count(*) FROM (SELECT DISTINCT memory_id FROM passage WHERE id IN (
		SELECT rowid FROM passage_text WHERE passage_text MATCH ? AND rowid BETWEEN ? AND ?) LIMIT ?)`,
		match, in.First, in.Last, limit).Scan(&n)
	return n, err
}

func (w words) Best(in db.Range, terms []string, limit int) ([]int64, error) {
	match := text.Match(terms)
	if match == "" {
		return nil, nil
	}
	return db.Column[int64](w, `SELECT rowid FROM passage_text WHERE passage_text MATCH ? AND rowid BETWEEN ? AND ?
		ORDER BY rank LIMIT ?`, match, in.First, in.Last, limit)
}

func (w words) Passages() ([]int64, error) {
	return db.Column[int64](w, `SELECT rowid FROM passage_text`)
}

func (w words) Occurrences(fn func(passage int64, column string, offset int, term string) error) error {
	if _, err := w.Exec(`CREATE VIRTUAL TABLE temp.held USING fts5vocab('main', 'passage_text', 'instance')`); err != nil {
		return err
	}
	return w.Each(func(row db.Rows) error {
		var term, column string
		var passage int64
		var offset int
		if err := row.Scan(&term, &passage, &column, &offset); err != nil {
			return err
		}
		return fn(passage, column, offset, term)
	}, `SELECT term, doc, col, offset FROM temp.held`)
}

// withoutMerging returns a write that leaves the full text in more segments than usual, up to a number per level:
// merging them goes through the log, and may be many times what a deletion writes itself. Later writes merge them.
func withoutMerging(segments int64, fn func(db.Tx) error) func(db.Tx) error {
	return func(tx db.Tx) error {
		has, err := db.Column[int64](tx, `SELECT 1 FROM sqlite_schema WHERE name = 'passage_text'`)
		if err != nil {
			return err
		}
		if len(has) == 0 {
			return fn(tx)
		}
		set := func(command string, value any) error {
			_, err := tx.Exec(`INSERT INTO passage_text (passage_text, rank) VALUES (?, ?)`, command, value)
			return err
		}
		if err := errors.Join(set("automerge", 0), set("crisismerge", segments)); err != nil {
			return err
		}
		if err := fn(tx); err != nil {
			return err
		}
		return errors.Join(set("flush", nil), set("automerge", 4), set("crisismerge", 16)) // the defaults of FTS5
	}
}
