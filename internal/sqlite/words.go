package sqlite

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// Words is full text by FTS5 (https://www.sqlite.org/fts5.html).
func (tx *Tx) Words() db.Words { return words{tx} }

type words struct{ *Tx }

// lateWords are the full-text rows that a transaction has yet to write. FTS5 flushes its pending rows into a new
// segment whenever a savepoint begins, as for every caller of a shared transaction, and for many statements with
// triggers. So these rows are written last and together, before the COMMIT or a statement that reads full text.
type lateWords struct {
	rows   []wordsRow
	others int  // how many of them, from the first on, are of earlier callers
	early  bool // the present caller has written the rows of others within its savepoint
}

type wordsRow struct {
	passage       int64
	content, tags string
	replaces      bool // there may be a row of the passage
}

// write inserts the rows by passage, the order that FTS5 keeps in one segment. A passage that no longer exists gets no
// row. If a number was given twice, after a savepoint was rolled back, the last row counts.
func (l *lateWords) write(c *conn) error {
	if len(l.rows) == 0 {
		return nil
	}
	rows := l.rows
	l.rows, l.others, l.early = nil, 0, l.early || l.others > 0
	slices.SortStableFunc(rows, func(a, b wordsRow) int { return cmp.Compare(a.passage, b.passage) })
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.passage
	}
	present := ids
	var err error
	if c.removed {
		present, err = c.integers(`SELECT id FROM passage WHERE id IN `+db.Integers+` ORDER BY id`, db.List(ids))
	}
	for i, r := range rows {
		if err != nil {
			return err
		}
		last := i == len(rows)-1 || rows[i+1].passage != r.passage
		if _, found := slices.BinarySearch(present, r.passage); last && found {
			err = putWords(c, r)
		}
	}
	return err
}

// join begins the work of a caller.
func (l *lateWords) join() { l.others, l.early = len(l.rows), false }

// undo discards the rows of the present caller. False: its rollback would also lose rows of others.
func (l *lateWords) undo() bool {
	if l.early {
		return false
	}
	l.rows = l.rows[:l.others]
	return true
}

func putWords(c *conn, r wordsRow) error {
	query := `INSERT INTO passage_text (rowid, content, tags) VALUES (?, ?, ?)`
	if r.replaces {
		query = `INSERT OR REPLACE INTO passage_text (rowid, content, tags) VALUES (?, ?, ?)`
	}
	_, err := c.exec(query, []any{r.passage, r.content, r.tags})
	return err
}

func (w words) Put(passage int64, content, tags string, replaces bool) error {
	r := wordsRow{passage, content, tags, replaces}
	if w.late == nil {
		return putWords(w.conn, r)
	}
	if err := w.usable(); err != nil {
		return err
	}
	w.late.rows = append(w.late.rows, r)
	w.conn.argBytes += len(r.content) + len(r.tags)
	return nil
}

// written ensures that later statements see every Put of this transaction.
func (w words) written() error {
	if w.late == nil {
		return nil
	}
	if err := w.usable(); err != nil {
		return err
	}
	if err := w.late.write(w.conn); err != nil {
		w.lost = w.failed("full text", err) // some rows are written, and some are not
		return w.lost
	}
	return nil
}

func (w words) Drop(passages ...int64) error {
	if err := w.written(); err != nil {
		return err
	}
	for _, id := range passages {
		if _, err := w.Exec(`DELETE FROM passage_text WHERE rowid = ?`, id); err != nil {
			return err
		}
	}
	return nil
}

func (w words) Clear() error {
	if err := w.written(); err != nil {
		return err
	}
	_, err := w.Exec(`INSERT INTO passage_text (passage_text) VALUES ('delete-all')`)
	return err
}

// tidyPages is how many pages one step of Tidy merges.
const tidyPages = 500

// Tidy merges the segments of the index, in which dropped terms remain until then: section 6.8.
func (w words) Tidy(first bool) (more bool, err error) {
	if err := w.written(); err != nil {
		return false, err
	}
	pages := tidyPages
	if first {
		pages = -tidyPages // start over, with all segments
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

// match returns the FTS5 query (sqlite.org/fts5.html, section 3) for rows that contain any of the terms. No term
// can cause a syntax error: strings that cannot be terms are left out. It is "" if no term is left, which FTS5
// would refuse: there is nothing to find.
func match(terms []string) string {
	var b strings.Builder
	for _, t := range terms {
		if !text.IsTerm(t) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(" OR ")
		} else {
			b.WriteByte('(')
		}
		b.WriteString(`"` + t + `"`)
	}
	if b.Len() > 0 {
		b.WriteByte(')')
	}
	return b.String()
}

func (w words) Count(in db.Range, terms []string) (n int, err error) {
	if err := w.written(); err != nil {
		return 0, err
	}
	query := match(terms)
	if query == "" {
		return 0, nil
	}
	err = w.QueryRow(`SELECT count(*) FROM passage_text WHERE passage_text MATCH ? AND rowid BETWEEN ? AND ?`,
		query, in.First, in.Last).Scan(&n)
	return n, err
}

func (w words) CountMemories(in db.Range, terms []string, limit int) (n int, err error) {
	if err := w.written(); err != nil {
		return 0, err
	}
	query := match(terms)
	if query == "" {
		return 0, nil
	}
	err = w.QueryRow(`SELECT count(*) FROM (SELECT DISTINCT memory_id FROM passage WHERE id IN (
		SELECT rowid FROM passage_text WHERE passage_text MATCH ? AND rowid BETWEEN ? AND ?) LIMIT ?)`,
		query, in.First, in.Last, limit).Scan(&n)
	return n, err
}

func (w words) Best(in db.Range, terms []string, limit int) ([]int64, error) {
	if err := w.written(); err != nil {
		return nil, err
	}
	query := match(terms)
	if query == "" {
		return nil, nil
	}
	return db.Column[int64](w.Tx, `SELECT rowid FROM passage_text WHERE passage_text MATCH ? AND rowid BETWEEN ? AND ?
		ORDER BY rank LIMIT ?`, query, in.First, in.Last, limit)
}

func (w words) Each(fn func(passage int64, column string, offset int, term string) error) error {
	if err := w.written(); err != nil {
		return err
	}
	err := w.Tx.Each(func(row db.Rows) error {
		var passage int64
		err := row.Scan(&passage)
		if err != nil {
			return err
		}
		return fn(passage, "", 0, "")
	}, `SELECT rowid FROM passage_text`)
	if err != nil {
		return err
	}
	if _, err := w.Exec(`CREATE VIRTUAL TABLE temp.held USING fts5vocab('main', 'passage_text', 'instance')`); err != nil {
		return err
	}
	return w.Tx.Each(func(row db.Rows) error {
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
		if err := (words{tx.(*Tx)}).written(); err != nil {
			return err
		}
		return errors.Join(set("flush", nil), set("automerge", 4), set("crisismerge", 16)) // the defaults of FTS5
	}
}
