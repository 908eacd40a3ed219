package dbtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// upkeep checks the operations for maintenance on a sound database.
func upkeep(t *testing.T, d db.DB) {
	u := d.Upkeep()
	partition := place(t, d)
	write(t, d, func(tx db.Tx) error {
		_, err := addMemory(tx, partition, "m", "{}")
		return err
	})
	if name, version, _ := strings.Cut(u.Name, " "); name == "" || version == "" {
		t.Errorf("Name: got %q, want a name and a version", u.Name)
	}
	is(t, "Room", u.Room(t.Context()), nil)
	unless := func(part bool) error { // the error for a part that the engine may lack
		if part {
			return nil
		}
		return db.ErrUnsupported
	}
	is(t, "Compact", u.Compact(t.Context()), unless(u.Space != nil))
	is(t, "Flush", u.Flush(t.Context()), unless(u.File != nil))
	is(t, "Reindex", u.Reindex(t.Context()), unless(u.Check != nil))
	is(t, "Scratch", db.Scratch(t.Context(), d, func(tx db.Tx) error {
		problems, err := u.Problems(tx, 10)
		equal(t, "problems", fmt.Sprint(problems), "[]")
		broken, err2 := u.Broken(tx)
		equal(t, "broken references", fmt.Sprint(broken), "[]")
		size, err3 := u.Size(tx)
		equal(t, "a size", size.Database > size.Free && size.Free >= 0 && size.Log >= 0, u.Space != nil)
		return errors.Join(err, err2, err3)
	}), nil)
	is(t, "Scratch with a context that has ended", db.Scratch(canceled(t), d, func(db.Tx) error { return nil }),
		context.Canceled)
	for err, want := range map[error]bool{db.ErrCorrupt: true, context.Canceled: false, db.ErrBusy: false, nil: false,
		db.ErrUnavailable: false} {
		if got := u.Damaged(err); got != want {
			t.Errorf("Damaged(%v): got %t, want %t", err, got, want)
		}
	}
}

// copies checks Backup and Snapshot where the engine has them.
func copies(t *testing.T, d db.DB) {
	u := d.Upkeep()
	dir := t.TempDir()
	path := filepath.Join(dir, "copy")
	files := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if err := u.Backup(t.Context(), path, nil); errors.Is(err, db.ErrUnsupported) {
		_, err := u.Snapshot(t.Context(), nil)
		is(t, "Snapshot without Backup", err, db.ErrUnsupported)
		equal(t, "files", fmt.Sprint(files()), "[]")
		return
	} else if err != nil {
		t.Fatal(err)
	}
	is(t, "Backup to a path that exists", u.Backup(t.Context(), path, nil), fs.ErrExist)
	is(t, "Backup with a context that has ended", u.Backup(canceled(t), filepath.Join(dir, "other"), nil),
		context.Canceled)
	equal(t, "files", fmt.Sprint(files()), "[copy]")
	last := 0
	snapshot, err := u.Snapshot(t.Context(), func(done, total int) { last = total - done })
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, snapshot)
	is(t, "reading and closing a snapshot", errors.Join(err, snapshot.Close()), nil)
	equal(t, "a snapshot has bytes, and its progress ends", fmt.Sprint(n > 0, last), "true 0")
}

// occurrences checks the listing of all terms.
func occurrences(t *testing.T, d db.DB) {
	partition := place(t, d)
	first := partition << 32
	undone := errors.New("undone")
	put := func(tx db.Tx, memory, passage int64, content, tags string) error {
		_, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, ?, 0, 1, 0)`, passage, memory)
		return errors.Join(err, tx.Words().Put(passage, content, tags, false))
	}
	write(t, d, func(tx db.Tx) error {
		memory, err := addMemory(tx, partition, "m", "{}")
		err = errors.Join(err, put(tx, memory, first, "green tea green", "drink"))
		is(t, "a part that is undone", tx.Savepoint(func() error {
			err := put(tx, memory, first+1, "black coffee", "")
			n, err2 := tx.Words().Count(db.Range{First: first, Last: first + 9}, []string{"tea", "coffee"})
			equal(t, "passages that match within the part", n, 2)
			return errors.Join(err, err2, undone)
		}), undone)
		return errors.Join(err, put(tx, memory, first+1, "tea", ""), put(tx, memory, first+2, "", ""))
	})
	var passages, found []string
	is(t, "Scratch", db.Scratch(t.Context(), d, func(tx db.Tx) error {
		return tx.Words().Each(func(passage int64, column string, offset int, term string) error {
			if column == "" {
				passages = append(passages, fmt.Sprint(passage-first, " ", len(found)))
				return nil
			}
			found = append(found, fmt.Sprint(passage-first, " ", column, " ", offset, " ", term))
			return nil
		})
	}), nil)
	slices.Sort(passages)
	equal(t, "passages, each before all terms", strings.Join(passages, ", "), "0 0, 1 0, 2 0")
	slices.Sort(found)
	equal(t, "occurrences", strings.Join(found, ", "),
		"0 content 0 green, 0 content 1 tea, 0 content 2 green, 0 tags 0 drink, 1 content 0 tea")
	read(t, d, func(tx db.Tx) error {
		counting, able := tx.Words().(db.Counting)
		if !able {
			return nil
		}
		var counted []string
		terms := []string{"tea", "coffee", "drink", "green"}
		err := counting.Frequencies(db.Range{First: first, Last: first + 9}, []int64{first, first + 1}, terms,
			func(f db.Frequency) error {
				counted = append(counted, fmt.Sprint(f.Passage-first, " ", terms[f.Term], " ", f.Times, " of ", f.Terms))
				return nil
			})
		slices.Sort(counted)
		equal(t, "frequencies", strings.Join(counted, ", "), "0 drink 1 of 4, 0 green 2 of 4, 0 tea 1 of 4, 1 tea 1 of 1")
		return err
	})
	stop := errors.New("stop")
	is(t, "an error of the function", db.Scratch(t.Context(), d, func(tx db.Tx) error {
		return tx.Words().Each(func(int64, string, int, string) error { return stop })
	}), stop)
}

// readOnly checks a handle that must not write.
func readOnly(t *testing.T, e Engine) {
	if e.ReadOnly == nil {
		t.Skip("this database has one handle only")
	}
	one := e.Open(t)
	defer one.Close()
	write(t, one, func(tx db.Tx) error { return set(tx, key("a"), 1) })
	d := e.ReadOnly(t, one)
	defer d.Close()
	equal(t, "ReadOnly of both", fmt.Sprint(one.ReadOnly(), d.ReadOnly()), "false true")
	is(t, "Write", d.Write(t.Context(), func(db.Tx) error {
		t.Error("the function of a Write ran on a handle for reading")
		return nil
	}), db.ErrReadOnly)
	is(t, "Compact", d.Upkeep().Compact(t.Context()), db.ErrReadOnly)
	is(t, "a statement that writes", d.Read(t.Context(), func(tx db.Tx) error { return set(tx, key("b"), 1) }),
		db.ErrReadOnly)
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows", n, 1)
		return err
	})
}

// fills checks that a migration is completed in Go, in its own transaction.
func fills(t *testing.T, e Engine) {
	if e.Fill == nil {
		t.Skip("this engine has no migration that is completed in Go")
	}
	failed := errors.New("failed")
	d, err := e.Fill(t, map[string]func(db.Tx) error{"namespaces": func(tx db.Tx) error {
		return errors.Join(set(tx, key("filled"), 1), failed)
	}})
	is(t, "opening with a migration that fails", err, failed)
	if err == nil {
		_ = d.Close()
	}
	ran := 0
	d, err = e.Fill(t, map[string]func(db.Tx) error{"namespaces": func(tx db.Tx) error {
		ran++
		n, err := count(tx)
		equal(t, "rows that the failed migration has left", n, 0)
		return errors.Join(err, set(tx, key("filled"), 1))
	}, "unknown": func(db.Tx) error { return failed }})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	read(t, d, func(tx db.Tx) error {
		n, err := count(tx)
		equal(t, "rows, and how often it ran", fmt.Sprint(n, ran), "1 1")
		return err
	})
}

// rules checks the constraints and triggers behind the checks of the store's code.
func rules(t *testing.T, d db.DB) {
	partition := place(t, d)
	var collection, project, memory, other int64
	write(t, d, func(tx db.Tx) (err error) {
		insert := func(query string, args ...any) (row int64) {
			if err == nil {
				row, err = db.Insert(tx, query, args...)
			}
			return row
		}
		other = insert(`INSERT INTO users (uid, name, name_key, namespace, created_at)
			VALUES ('bob', 'Bob', 'bob', 'shop', 0) RETURNING id`)
		insert(`INSERT INTO users (uid, uid_key, namespace, created_at) VALUES ('cal', 'cal', 'shop', 0) RETURNING id`)
		project = insert(`INSERT INTO project (owner_id, uid, name, created_at, updated_at)
			SELECT id, 'p', 'p', 0, 0 FROM users WHERE uid = 'ann' RETURNING id`)
		collection = insert(`INSERT INTO collection (owner_id, name, description, created_at, updated_at)
			VALUES (?, 'box', '', 0, 0) RETURNING id`, other)
		memory = insert(`INSERT INTO memory (uid, partition_id, content, metadata, revision, created_at, updated_at, key,
			rule_of, rule_type) VALUES ('m', ?, '', '{}', 1, 0, 0, 'k', ?, 'style') RETURNING id`, partition, project)
		if err == nil {
			_, err = tx.Exec(`INSERT INTO file (uid, owner_id, memory_id, filename, mime_type, size, sha256, description,
				category, created_at, updated_at) SELECT 'f', id, ?, '', '', 0, ?, '', '', 0, 0 FROM users WHERE uid = 'ann'`,
				memory, []byte{})
		}
		return err
	})
	for what, c := range map[string]struct {
		query string
		args  []any
	}{
		"a user's id again": {`INSERT INTO users (uid, namespace, created_at) VALUES ('bob', 'shop', 0)`, nil},
		"a folded name again": {`INSERT INTO users (uid, name, name_key, namespace, created_at)
			VALUES ('x', 'BOB', 'bob', 'shop', 0)`, nil},
		"a name that is a user's id": {`INSERT INTO users (uid, name, name_key, namespace, created_at)
			VALUES ('x', 'CAL', 'cal', 'shop', 0)`, nil},
		"another name that is a user's id": {`UPDATE users SET name = 'CAL', name_key = 'cal' WHERE uid = 'bob'`, nil},
		"an id that is a user's name": {`INSERT INTO users (uid, uid_key, namespace, created_at)
			VALUES ('BOB', 'bob', 'shop', 0)`, nil},
		"a key again": {`INSERT INTO memory (uid, partition_id, content, metadata, revision, created_at, updated_at, key)
			VALUES ('n', ?, '', '{}', 1, 0, 0, 'k')`, []any{partition}},
		"a rule's type again": {`INSERT INTO memory (uid, partition_id, content, metadata, revision, created_at, updated_at,
			rule_of, rule_type) VALUES ('n', ?, '', '{}', 1, 0, 0, ?, 'style')`, []any{partition, project}},
		"a member of another namespace": {`INSERT INTO project_member (project_id, user_id, role, created_at)
			VALUES (?, ?, 'reader', 0)`, []any{project, other}},
		"a recipient of another namespace": {`INSERT INTO project_invitation (uid, project_id, sender_id, invited,
			recipient_id, role, created_at, expires_at) VALUES ('i', ?, ?, 'x', ?, 'reader', 0, 0)`,
			[]any{project, other, other}},
		"a place in a project of another namespace": {`INSERT INTO partition (collection_id, project_id) VALUES (?, ?)`,
			[]any{collection, project}},
		"a move to another namespace": {`UPDATE users SET namespace = '' WHERE id = ?`, []any{other}},
	} {
		is(t, what, d.Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(c.query, c.args...)
			return err
		}), db.ErrConstraint)
	}
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`DELETE FROM memory WHERE id = ?`, memory)
		return err
	})
	read(t, d, func(tx db.Tx) error {
		linked, err := db.Column[bool](tx, `SELECT memory_id IS NOT NULL FROM file`)
		equal(t, "files of a deleted memory, and whether they are linked", fmt.Sprint(linked), "[false]")
		return err
	})
}
