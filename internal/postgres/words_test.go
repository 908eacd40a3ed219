package postgres_test

import (
	"fmt"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/postgres"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

// answers describes what the words of a range say about some terms.
func answers(t *testing.T, d db.DB, in db.Range) (all string) {
	t.Helper()
	err := d.Read(t.Context(), func(tx db.Tx) error {
		w := tx.Words()
		for _, terms := range [][]string{{"every"}, {"third"}, {"third", "fifth"}, {"n7"}, {"none"}, {"tag"}} {
			n, err := w.Count(in, terms)
			if err != nil {
				return err
			}
			best, err := w.Best(in, terms, 5)
			if err != nil {
				return err
			}
			all += fmt.Sprintln(terms, n, best)
			times := 0
			err = w.(db.Counting).Frequencies(in, best, terms, func(f db.Frequency) error {
				times += f.Times * (f.Term + 1)
				return nil
			})
			if all += fmt.Sprintln(times); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// indexed counts the passages in the index.
func indexed(t *testing.T, d db.DB) (n int) {
	t.Helper()
	err := d.Read(t.Context(), func(tx db.Tx) error {
		return tx.QueryRow(`SELECT count(DISTINCT passage_id) FROM passage_term`).Scan(&n)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Words are found the same before and after background work has indexed them, and after any change.
func TestWordsAreFoundWhereverTheyAre(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const passages = 1200
	partition, memory := withPassages(t, d, passages)
	in := db.Range{First: partition << 32, Last: partition<<32 | 1<<31}
	before := answers(t, d, in)
	if got := indexed(t, d); got != 0 {
		t.Errorf("passages in the index before the background: got %d, want 0", got)
	}
	if err := d.Maintain(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := indexed(t, d); got != passages {
		t.Errorf("passages in the index: got %d, want %d", got, passages)
	}
	if got := answers(t, d, in); got != before {
		t.Errorf("words in the index: got %s, want %s", got, before)
	}
	change := func(tx db.Tx) error { // of passages that are in the index, and of others
		if err := add(tx, partition, memory, passages, passages+50); err != nil {
			return err
		}
		for _, n := range []int64{3, 6, passages + 3} {
			if err := tx.Words().Put(partition<<32|n, "fifth new", "tag", true); err != nil {
				return err
			}
		}
		return tx.Words().Drop(partition<<32|9, partition<<32|(passages+9))
	}
	write(t, d, change)
	changed := answers(t, d, in)
	write(t, d, func(tx db.Tx) error {
		if _, err := tx.Exec(`DELETE FROM passage_term`); err != nil {
			return err
		}
		_, err := tx.Exec(`DELETE FROM word_partition`)
		return err
	})
	if got := answers(t, d, in); got != changed {
		t.Errorf("words that changed, from their texts: got %s, want %s, as with the index", got, changed)
	}
	if changed == before {
		t.Errorf("got the same answers after changes, want others: %s", before)
	}
}

// A deleted collection leaves nothing in the index of words.
func TestWordsOfACollectionGoWithIt(t *testing.T) {
	d, err := postgres.Open(t.Context(), pgtest.Address(t), db.Opening{Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	partition, _ := withPassages(t, d, 1200)
	if err := d.Maintain(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	terms := func() (n int) {
		err := d.Read(t.Context(), func(tx db.Tx) error { return tx.QueryRow(`SELECT count(*) FROM passage_term`).Scan(&n) })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := terms(); got < 1200 {
		t.Fatalf("terms in the index: got %d, want at least 1200", got)
	}
	write(t, d, func(tx db.Tx) error { return tx.Words().Drop(partition << 32) })
	write(t, d, func(tx db.Tx) error {
		_, err := tx.Exec(`DELETE FROM collection`)
		return err
	})
	if got := terms(); got != 0 {
		t.Errorf("terms in the index after the collection is deleted: got %d, want 0", got)
	}
}

// withPassages adds a memory with passages.
func withPassages(t *testing.T, d db.DB, passages int64) (partition, memory int64) {
	t.Helper()
	write(t, d, func(tx db.Tx) error {
		user, err := db.Insert(tx, `INSERT INTO users (uid, created_at) VALUES ('ann', 0) RETURNING id`)
		if err != nil {
			return err
		}
		collection, err := db.Insert(tx, `INSERT INTO collection (owner_id, name, description, created_at, updated_at)
			VALUES (?, 'default', '', 0, 0) RETURNING id`, user)
		if err != nil {
			return err
		}
		if partition, err = db.Insert(tx, `INSERT INTO partition (collection_id) VALUES (?) RETURNING id`,
			collection); err != nil {
			return err
		}
		if memory, err = db.Insert(tx, `INSERT INTO memory (uid, partition_id, content, metadata, revision, created_at,
			updated_at) VALUES ('one', ?, 'text', '{}', 1, 0, 0) RETURNING id`, partition); err != nil {
			return err
		}
		return add(tx, partition, memory, 0, passages)
	})
	return partition, memory
}

func write(t *testing.T, d db.DB, fn func(db.Tx) error) {
	t.Helper()
	if err := d.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// add adds passages with words to a memory.
func add(tx db.Tx, partition, memory, from, to int64) error {
	for n := from; n < to; n++ {
		words := fmt.Sprintf("every n%d", n)
		if n%3 == 0 {
			words += " third third"
		}
		if n%5 == 0 {
			words += " fifth"
		}
		if err := db.Queue(tx, `INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, ?, 0, 4, 0)`,
			partition<<32|n, memory); err != nil {
			return err
		}
		if err := tx.Words().Put(partition<<32|n, words, "", false); err != nil {
			return err
		}
	}
	return nil
}
