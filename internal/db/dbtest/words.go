package dbtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// wordsOfMissing checks words of passages whose rows come after them, are deleted after them, or do not exist.
func wordsOfMissing(t *testing.T, d db.DB) {
	partition := place(t, d)
	first := partition << 32
	var memory int64
	insert := func(tx db.Tx, passage int64) error {
		_, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, ?, 0, 1, 0)`, passage, memory)
		return err
	}
	remove := func(tx db.Tx, passage int64) error {
		_, err := tx.Exec(`DELETE FROM passage WHERE id = ?`, passage)
		return err
	}
	with := func(what, term string, least, most int) {
		t.Helper()
		read(t, d, func(tx db.Tx) error {
			n, err := tx.Words().Count(db.Range{First: first, Last: first + 9}, []string{term})
			if n < least || n > most {
				t.Errorf("%s: got %d passages with %q, want %d to %d", what, n, term, least, most)
			}
			return err
		})
	}
	write(t, d, func(tx db.Tx) (err error) {
		memory, err = addMemory(tx, partition, "m", "{}")
		return errors.Join(err, tx.Words().Put(first, "later", "", false), insert(tx, first))
	})
	with("a row that comes later", "later", 1, 1)
	write(t, d, func(tx db.Tx) error {
		return errors.Join(insert(tx, first+1), tx.Words().Put(first+1, "gone", "", false), remove(tx, first+1))
	})
	with("a row that is deleted later", "gone", 0, 0)
	write(t, d, func(tx db.Tx) error {
		return errors.Join(tx.Words().Put(first, "gone", "", true), remove(tx, first))
	})
	with("a row that is deleted after its words are replaced", "gone", 0, 0)
	with("a row that is deleted after its words are replaced", "later", 0, 0)

	write(t, d, func(tx db.Tx) error {
		return errors.Join(tx.Words().Put(first+2, "stray", "", false), tx.Words().Put(first+3, "stray", "", false))
	})
	with("rows that do not exist", "stray", 0, 2)
	write(t, d, func(tx db.Tx) error { return tx.Words().Drop(first + 2) })
	with("after a drop", "stray", 0, 1)
	write(t, d, func(tx db.Tx) error {
		return errors.Join(insert(tx, first+3), tx.Words().Put(first+3, "found", "", true))
	})
	with("after the row came, with other words", "stray", 0, 0)
	with("after the row came, with other words", "found", 1, 1)
}

func words(t *testing.T, d db.DB) {
	partition := place(t, d)
	first := partition << 32
	all := db.Range{First: first, Last: first + 1<<32 - 1}
	addWords(t, d, partition)
	look := func(what string, terms []string, in db.Range, passages, memories int, best ...int64) {
		t.Helper()
		read(t, d, func(tx db.Tx) error {
			n, err := tx.Words().Count(in, terms)
			m, err2 := tx.Words().CountMemories(in, terms, 100)
			found, err3 := tx.Words().Best(in, terms, 100)
			equal(t, what+": passages, memories", fmt.Sprint(n, m), fmt.Sprint(passages, memories))
			for i := range found {
				found[i] -= first
			}
			if len(best) > 0 && len(found) > 0 {
				equal(t, what+": the best", found[0], best[0])
			}
			slices.Sort(found)
			slices.Sort(best)
			equal(t, what+": all", fmt.Sprint(found), fmt.Sprint(best))
			return errors.Join(err, err2, err3)
		})
	}
	look("a term", []string{"tea"}, all, 2, 1, 1, 0)
	look("two terms", []string{"green", "coffee"}, all, 3, 3, 10, 0, 20)
	look("a tag", []string{"drink"}, all, 2, 2, 0, 10)
	look("a part of the range", []string{"green"}, db.Range{First: first + 1, Last: first + 30}, 1, 1, 20)
	look("another partition", []string{"green"}, db.Range{First: all.Last + 1, Last: all.Last + 1<<32}, 0, 0)
	look("nothing that is there", []string{"water"}, all, 0, 0)
	look("no terms", nil, all, 0, 0)
	read(t, d, func(tx db.Tx) error {
		best, err := tx.Words().Best(all, []string{"door", "green"}, 1)
		m, err2 := tx.Words().CountMemories(all, []string{"green", "black"}, 2)
		for _, terms := range [][]string{{`"`}, {`x" OR "y`}, {"*"}, {"'"}, {"\x00"}} {
			n, err := tx.Words().Count(all, terms)
			if err != nil || n != 0 {
				t.Errorf("%q: got %d, %v; want 0", terms, n, err)
			}
		}
		equal(t, "the best and a limit", fmt.Sprint(best, m), fmt.Sprint([]int64{first + 20}, 2))
		return errors.Join(err, err2)
	})
	otherWords(t, d, all, first+10, "black coffee", "drink")
	write(t, d, func(tx db.Tx) error { return tx.Words().Drop(first, first+4711) })
	look("after a drop", []string{"green", "drink"}, all, 2, 2, 20, 10)
	write(t, d, func(tx db.Tx) error { // what belongs to a passage is deleted with it
		_, err := tx.Exec(`DELETE FROM passage WHERE id = ?`, first+20)
		return err
	})
	look("after a passage is gone", []string{"green"}, all, 0, 0)
	for steps, more := 0, true; more; steps++ {
		write(t, d, func(tx db.Tx) (err error) {
			more, err = db.Tidy(tx, steps == 0)
			return err
		})
		if steps > 100 {
			t.Fatalf("tidying has no end: got %v steps, want at most 100", steps)
		}
	}
	look("after tidying", []string{"tea", "coffee"}, all, 2, 2, 1, 10)
	listed := map[int64]bool{}
	is(t, "listing the rest", db.Scratch(t.Context(), d, func(tx db.Tx) error {
		return tx.Words().Each(func(passage int64, _ string, _ int, _ string) error {
			listed[passage-first] = true
			return nil
		})
	}), nil)
	equal(t, "passages", fmt.Sprint(listed), "map[1:true 10:true 21:true]")
	write(t, d, func(tx db.Tx) error { return tx.Words().Clear() })
	look("after clearing", []string{"tea", "coffee"}, all, 0, 0)
}

// addWords adds three memories of one or two passages, and their words. The passages of the first are 0 and 1, of the
// second 10, of the third 20 and 21.
func addWords(t *testing.T, d db.DB, partition int64) {
	t.Helper()
	write(t, d, func(tx db.Tx) error {
		for m, passages := range [][]string{{"green tea", "tea tea tea"}, {"black coffee"}, {"green door", "a door"}} {
			memory, err := addMemory(tx, partition, fmt.Sprint(m), "{}")
			if err != nil {
				return err
			}
			for n, text := range passages {
				id := partition<<32 + int64(10*m+n)
				_, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, ?, 0, 1, 0)`, id, memory)
				tags := map[bool]string{true: "drink"}[m < 2 && n == 0]
				if err := errors.Join(err, tx.Words().Put(id, text, tags, false)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// otherWords replaces the terms of a passage several times, and in the end by the given ones, which it had before.
func otherWords(t *testing.T, d db.DB, in db.Range, passage int64, content, tags string) {
	t.Helper()
	has := func(tx db.Tx, term string, want int) {
		t.Helper()
		if n, err := tx.Words().Count(in, []string{term}); err != nil || n != want {
			t.Errorf("after replacing: got %d passages with %q, %v; want %d", n, term, err, want)
		}
	}
	write(t, d, func(tx db.Tx) error {
		err := tx.Words().Put(passage, "white wine", "", true)
		has(tx, "wine", 1)
		has(tx, "coffee", 0)
		return errors.Join(err, tx.Words().Put(passage, "red juice", "", true), tx.Words().Put(passage, "juice", "", true))
	})
	read(t, d, func(tx db.Tx) error {
		has(tx, "wine", 0)
		has(tx, "red", 0)
		has(tx, "juice", 1)
		return nil
	})
	write(t, d, func(tx db.Tx) error {
		undone := errors.New("undone")
		err := tx.Savepoint(func() error { return errors.Join(tx.Words().Put(passage, "water", "", true), undone) })
		if !errors.Is(err, undone) {
			t.Errorf("a savepoint that is undone: got %v, want %v", err, undone)
		}
		return nil
	})
	write(t, d, func(tx db.Tx) error {
		has(tx, "water", 0)
		has(tx, "juice", 1)
		return tx.Words().Put(passage, content, tags, true)
	})
	read(t, d, func(tx db.Tx) error {
		has(tx, "juice", 0)
		return nil
	})
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

// severalTerms checks that a passage with several terms of a query counts as one match, as does a memory with several
// such passages, also where there is a limit.
func severalTerms(t *testing.T, d db.DB) {
	partition := place(t, d)
	first := partition << 32
	all := db.Range{First: first, Last: first + 100}
	write(t, d, func(tx db.Tx) error {
		for m, passages := range [][]string{{"green tea", "tea cup"}, {"green tea tea"}, {"coffee"}} {
			memory, err := addMemory(tx, partition, fmt.Sprint(m), "{}")
			if err != nil {
				return err
			}
			for n, text := range passages {
				id := first + int64(10*m+n)
				_, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank) VALUES (?, ?, 0, 1, 0)`, id, memory)
				if err := errors.Join(err, tx.Words().Put(id, text, "tea", false)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	read(t, d, func(tx db.Tx) error {
		for _, c := range []struct {
			terms              string
			passages, memories int
			best               string
		}{
			{"green tea", 4, 3, "[0 1 10 20]"}, {"tea tea", 4, 3, "[0 1 10 20]"}, {"green cup", 3, 2, "[0 1 10]"},
			{"green green", 2, 2, "[0 10]"}, {"cup tea green coffee", 4, 3, "[0 1 10 20]"},
		} {
			terms := strings.Fields(c.terms)
			n, err := tx.Words().Count(all, terms)
			m, err2 := tx.Words().CountMemories(all, terms, 100)
			some, err5 := tx.Words().CountMemories(all, terms, c.memories)
			best, err3 := tx.Words().Best(all, terms, c.passages)
			few, err4 := tx.Words().Best(all, terms, 2)
			for i := range best {
				best[i] -= first
			}
			slices.Sort(best)
			slices.Sort(few)
			equal(t, c.terms+": passages, memories, memories up to as many, the best", fmt.Sprint(n, m, some, " ", best),
				fmt.Sprint(c.passages, c.memories, c.memories, " ", c.best))
			equal(t, c.terms+": different ones of the two best", len(slices.Compact(few)), 2)
			if err := errors.Join(err, err2, err3, err4, err5); err != nil {
				return err
			}
		}
		return nil
	})
}
