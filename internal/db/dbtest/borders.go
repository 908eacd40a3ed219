package dbtest

import (
	"errors"
	"fmt"
	"slices"
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

// manyPassages checks words, vectors and changes of more memories than fit into one batch.
func manyPassages(t *testing.T, d db.DB) {
	const many = 1500
	partition := place(t, d)
	in := db.Range{First: partition << 32, Last: partition<<32 + many}
	var profile int64
	write(t, d, func(tx db.Tx) (err error) {
		profile, err = db.Insert(tx,
			`INSERT INTO profile (key, model, dimensions, created_at) VALUES ('a', 'a', 2, 0) RETURNING id`)
		return err
	})
	_, begin, _ := since(t, d, "", 10)
	write(t, d, func(tx db.Tx) error {
		for i := range int64(many) {
			memory, err := db.InsertNumbered(tx, "memory", `INSERT INTO memory (id, uid, partition_id, content, metadata,
				revision, created_at, updated_at) VALUES (?, ?, ?, 'content', '{}', 1, 0, 0)`, fmt.Sprint("m", i), partition)
			if err == nil {
				err = db.Queue(tx, `INSERT INTO passage (id, memory_id, start, length, blank, profile_id, vector)
					VALUES (?, ?, 0, 1, 0, ?, ?)`, in.First+i+1, memory, profile, floats(1, 0))
			}
			if err == nil {
				err = tx.Words().Put(in.First+i+1, "tea", "", false)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	distinct := func(rows []int64) string {
		slices.Sort(rows)
		return fmt.Sprint(len(rows), len(slices.Compact(slices.Clone(rows))))
	}
	look := func(tx db.Tx) error {
		passages, err := tx.Words().Count(in, []string{"tea"})
		memories, err2 := tx.Words().CountMemories(in, []string{"tea"}, 2*many)
		best, err3 := tx.Words().Best(in, []string{"tea"}, 2*many)
		var compared []int64
		err4 := tx.Vectors().Compare(in, floats(1, 0), []int64{profile}, func(c db.Compared) error {
			compared = append(compared, c.Passage)
			return nil
		})
		changed, _, complete, err5 := tx.Changes().Since(begin, 2*many)
		equal(t, "passages and memories with a term", fmt.Sprint(passages, memories), fmt.Sprint(many, many))
		all := fmt.Sprint(many, many)
		equal(t, "the best, and different ones of them", distinct(best), all)
		equal(t, "with vectors, and different ones of them", distinct(compared), all)
		equal(t, "changes, and different ones of them", distinct(changed), all)
		equal(t, "the changes are complete", complete, true)
		return errors.Join(err, err2, err3, err4, err5)
	}
	read(t, d, look)
	maintains(t, d, func(string) { read(t, d, look) })
}
