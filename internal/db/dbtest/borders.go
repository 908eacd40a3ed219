package dbtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// borders checks that a range has the words and vectors between its borders, both included, although the neighbours of
// each border have the same ones, even in the next partition.
func borders(t *testing.T, d db.DB) {
	partitions := []int64{place(t, d), 0, 0}
	var profile int64
	var ids, memories []int64
	write(t, d, func(tx db.Tx) (err error) {
		ids, memories = nil, nil
		profile, err = db.Insert(tx,
			`INSERT INTO profile (key, model, dimensions, created_at) VALUES ('a', 'a', 2, 0) RETURNING id`)
		for i, name := range []string{"", "next", "last"} {
			if i > 0 && err == nil {
				partitions[i], err = addPartition(tx, name)
			}
			for n, place := range []int64{0, 1, 1<<32 - 2, 1<<32 - 1} {
				memory, err2 := addMemory(tx, partitions[i], fmt.Sprint(i, " ", n), "{}")
				ids, memories = append(ids, partitions[i]<<32+place), append(memories, memory)
				if err := errors.Join(err, err2); err != nil {
					return err
				}
				if _, err = tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank, profile_id, vector)
					VALUES (?, ?, 0, 1, 0, ?, ?)`, ids[len(ids)-1], memory, profile, floats(1, 0)); err != nil {
					return err
				}
				if err := tx.Words().Put(ids[len(ids)-1], "tea", "", false); err != nil {
					return err
				}
			}
		}
		return err
	})
	read(t, d, func(tx db.Tx) error {
		terms, profiles := []string{"tea"}, []int64{profile}
		for first := range ids {
			for last := first; last < len(ids); last++ {
				in, want := db.Range{First: ids[first], Last: ids[last]}, ids[first:last+1]
				what := fmt.Sprintf("passages %#x to %#x: ", in.First, in.Last)
				passages, err := tx.Words().Count(in, terms)
				counted, err2 := tx.Words().CountMemories(in, terms, 100)
				best, err3 := tx.Words().Best(in, terms, 100)
				var compared, selected []int64
				err4 := tx.Vectors().Compare(in, floats(1, 0), profiles, func(c db.Compared) error {
					compared = append(compared, c.Passage)
					return nil
				})
				if some, able := tx.Vectors().(db.Selective); able {
					err4 = errors.Join(err4, some.CompareOf(in, floats(1, 0), profiles, memories, func(c db.Compared) error {
						selected = append(selected, c.Passage)
						return nil
					}))
				} else {
					selected = slices.Clone(want)
				}
				slices.Sort(best)
				slices.Sort(compared)
				slices.Sort(selected)
				equal(t, what+"passages and memories with a term", fmt.Sprint(passages, counted), fmt.Sprint(len(want), len(want)))
				equal(t, what+"the best", fmt.Sprint(best), fmt.Sprint(want))
				equal(t, what+"with vectors", fmt.Sprint(compared), fmt.Sprint(want))
				equal(t, what+"with vectors, of some memories", fmt.Sprint(selected), fmt.Sprint(want))
				if err := errors.Join(err, err2, err3, err4); err != nil {
					return err
				}
			}
		}
		return nil
	})
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
