package dbtest

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

func vectors(t *testing.T, d db.DB) {
	partition := place(t, d)
	first := partition << 32
	var profiles []int64
	var memory int64
	write(t, d, func(tx db.Tx) (err error) {
		profiles = nil
		for _, key := range []string{"a", "b"} {
			row, err := db.Insert(tx, `INSERT INTO profile (key, model, dimensions, created_at) `+
				`VALUES (?, ?, 2, 0) RETURNING id`, key, key)
			if err != nil {
				return err
			}
			profiles = append(profiles, row)
		}
		if memory, err = addMemory(tx, partition, "m", "{}"); err != nil {
			return err
		}
		for n, v := range []any{floats(1, 0), floats(0.6, 0.8), floats(0, 0), floats(1, 0, 0), nil, floats(-1, 0)} {
			profile := profiles[0]
			if n == 5 {
				profile = profiles[1]
			}
			if _, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank, profile_id, vector) `+
				`VALUES (?, ?, ?, 7, 0, ?, ?)`,
				first+int64(n), memory, n, profile, v); err != nil {
				return err
			}
		}
		return nil
	})
	compare := func(in db.Range, profiles ...int64) string {
		var found []string
		read(t, d, func(tx db.Tx) error {
			found = nil
			return tx.Vectors().Compare(in, floats(1, 0), profiles, func(c db.Compared) error {
				found = append(found, fmt.Sprintf("%d %t %d+%d %.3f", c.Passage-first, c.Memory == memory, c.Start, c.Length,
					c.Cosine))
				return nil
			})
		})
		slices.Sort(found)
		return strings.Join(found, ", ")
	}
	all := db.Range{First: first, Last: first + 100}
	equal(t, "of one profile", compare(all, profiles[0]), "0 true 0+7 1.000, 1 true 1+7 0.600, 2 true 2+7 NaN")
	equal(t, "of both", compare(all, profiles...), "0 true 0+7 1.000, 1 true 1+7 0.600, 2 true 2+7 NaN, 5 true 5+7 -1.000")
	equal(t, "of a range", compare(db.Range{First: first + 1, Last: first + 1}, profiles...), "1 true 1+7 0.600")
	equal(t, "of no profile", compare(all), "")
	read(t, d, func(tx db.Tx) error {
		some, able := tx.Vectors().(db.Selective)
		if !able {
			return nil
		}
		for _, memories := range [][]int64{{memory}, {memory + 1}, {}, {memory + 1, memory}} {
			n := 0
			err := some.CompareOf(all, floats(1, 0), profiles, memories, func(db.Compared) error { n++; return nil })
			if err != nil {
				return err
			}
			want := 0
			if slices.Contains(memories, memory) {
				want = 4
			}
			equal(t, fmt.Sprint("passages of the memories ", memories), n, want)
		}
		return nil
	})
	bothForms(t, d, memory, first, profiles)
	stop := errors.New("stop")
	err := d.Read(t.Context(), func(tx db.Tx) error {
		return tx.Vectors().Compare(all, floats(1, 0), profiles, func(db.Compared) error { return stop })
	})
	is(t, "an error of the function", err, stop)
}

func floats(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// bothForms compares vectors in the short form and in the exact one, and bytes of neither.
func bothForms(t *testing.T, d db.DB, memory, first int64, profiles []int64) {
	east, north := make([]float32, 64), make([]float32, 64)
	east[0], north[0], north[63] = 1, 0.6, 0.8
	spoilt := vectorform.Short(east)
	spoilt[0] = 0
	in := db.Range{First: first + 10, Last: first + 12}
	write(t, d, func(tx db.Tx) error {
		for n, v := range [][]byte{vectorform.Short(north), vectorform.Exact(north), vectorform.Short(make([]float32, 64)),
			spoilt} {
			if _, err := tx.Exec(`INSERT INTO passage (id, memory_id, start, length, blank, profile_id, vector) `+
				`VALUES (?, ?, 0, 7, 0, ?, ?)`, in.First+int64(n), memory, profiles[0], v); err != nil {
				return err
			}
		}
		return nil
	})
	var found []string
	compare := func(tx db.Tx) error {
		found = nil
		return tx.Vectors().Compare(in, vectorform.Exact(east), profiles, func(c db.Compared) error {
			found = append(found, fmt.Sprintf("%d %.4f", c.Passage-in.First, c.Cosine))
			return nil
		})
	}
	read(t, d, compare)
	slices.Sort(found)
	equal(t, "short, exact and without a direction", strings.Join(found, ", "), "0 0.6000, 1 0.6000, 2 NaN")
	in.Last++
	is(t, "bytes of no form", d.Read(t.Context(), compare), db.ErrCorrupt)
}

// nearest checks an index of vectors: what it finds are passages of the range with exact cosines, which lack few of the
// nearest ones, none that the index does not have yet, and none of the requested ones.
func nearest(t *testing.T, e Engine) {
	if e.Near == nil {
		t.Skip("this engine has no index of vectors, as Engine.Near is nil")
	}
	plain := e.Open(t)
	defer plain.Close()
	n := near{partition: place(t, plain), random: rand.New(rand.NewPCG(1, 2))}
	write(t, plain, func(tx db.Tx) (err error) {
		n.profile, err = db.Insert(tx,
			`INSERT INTO profile (key, model, dimensions, created_at) VALUES ('a', 'a', 8, 0) RETURNING id`)
		if err == nil {
			_, err = tx.Exec(`UPDATE collection SET own_profile = ?`, n.profile)
		}
		if err == nil {
			n.beside, err = addPartition(tx, "beside")
		}
		return err
	})
	n.add(t, plain, n.partition, 0, 400)
	n.add(t, plain, n.beside, 0, 50)
	n.DB = e.Near(t, plain)
	defer n.Close()
	maintains(t, n.DB, func(when string) { n.look(t, when, 0) })
	n.add(t, n, n.partition, 400, 30)
	write(t, n, func(tx db.Tx) error {
		for _, number := range []int64{3, 5, 7} {
			if _, err := tx.Exec(`UPDATE passage SET vector = ? WHERE id = ?`, n.vector(), n.partition<<32+number); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`DELETE FROM memory WHERE uid IN (?, ?)`, fmt.Sprint(n.partition, "/", 20),
			fmt.Sprint(n.partition, "/", 30))
		if err == nil {
			_, err = tx.Exec(`UPDATE passage SET vector = NULL WHERE id = ?`, n.partition<<32+40)
		}
		return err
	})
	n.look(t, "after changes", 400)
	maintains(t, n.DB, func(when string) { n.look(t, when+" again", 0) })
}

// near is a database with an index of vectors, and what it holds.
type near struct {
	db.DB
	partition, beside, profile int64
	random                     *rand.Rand
}

// vector returns one in any direction, of length 1.
func (n near) vector() []byte {
	numbers, length := make([]float32, 8), 0.0
	for i := range numbers {
		numbers[i] = float32(n.random.NormFloat64())
		length += float64(numbers[i]) * float64(numbers[i])
	}
	for i := range numbers {
		numbers[i] /= float32(math.Sqrt(length))
	}
	return floats(numbers...)
}

// add adds memories with a passage each; every tenth has no vector.
func (n near) add(t *testing.T, d db.DB, partition, from, number int64) {
	t.Helper()
	write(t, d, func(tx db.Tx) error {
		for i := from; i < from+number; i++ {
			memory, err := addMemory(tx, partition, fmt.Sprint(partition, "/", i), "{}")
			if err != nil {
				return err
			}
			vector := n.vector()
			if i%10 == 9 {
				vector = nil
			}
			if err := db.Queue(tx, `INSERT INTO passage (id, memory_id, start, length, blank, profile_id, vector)
				VALUES (?, ?, 0, 7, 0, ?, ?)`, partition<<32+i, memory, n.profile, vector); err != nil {
				return err
			}
		}
		return nil
	})
}

// look compares what the index finds with all vectors. Passages from behind on are not in the index; 0: all are.
func (n near) look(t *testing.T, when string, behind int64) {
	t.Helper()
	const limit = 20
	in := db.Range{First: n.partition << 32, Last: (n.partition+1)<<32 - 1}
	read(t, n, func(tx db.Tx) error {
		v, able := tx.Vectors().(db.Nearer)
		if !able {
			t.Error("got Vectors that are no db.Nearer, want one, as Engine.Near says")
			return nil
		}
		for range 5 {
			vector, profiles := n.vector(), []int64{n.profile}
			all, memories := map[int64]db.Compared{}, map[int64]bool{}
			if err := tx.Vectors().Compare(in, vector, profiles, func(c db.Compared) error {
				all[c.Passage], memories[c.Memory] = c, true
				return nil
			}); err != nil {
				return err
			}
			ids := []int64{in.First + 1, in.First + 2, in.First + 9, in.First + 20, in.Last}
			found, besides, is, err := v.Nearest(in, vector, profiles, limit, ids)
			if err != nil || !is {
				t.Errorf("%s: got found %t and the error %v, want something found", when, is, err)
				return err
			}
			if len(found) < limit/2 || len(found) > 2*limit {
				t.Errorf("%s: got %d of the nearest, want about %d", when, len(found), limit)
			}
			named := map[int64]bool{}
			for _, c := range slices.Concat(found, besides) {
				if named[c.Passage] || c != all[c.Passage] {
					t.Errorf("%s: got %+v, named before: %t; want each once, as Compare has it: %+v", when, c,
						named[c.Passage], all[c.Passage])
				}
				named[c.Passage] = true
			}
			for passage := range all {
				if !named[passage] && (slices.Contains(ids, passage) || behind > 0 && passage >= in.First+behind) {
					t.Errorf("%s: passage %d is missing, want it: it is requested, or not in the index", when, passage-in.First)
				}
			}
			missed := 0
			order := slices.SortedFunc(maps.Values(all), func(a, b db.Compared) int { return cmp.Compare(b.Cosine, a.Cosine) })
			for _, c := range order[:limit/2] {
				if !named[c.Passage] {
					missed++
				}
			}
			if missed > 1 {
				t.Errorf("%s: got %d of the nearest %d missing, want at most 1", when, missed, limit/2)
			}
			with, err := v.WithVectors(in, vector, nil)
			even, err2 := v.WithVectors(in, vector, func(memory int64) bool { return memory%2 == 0 })
			wantEven := 0
			for memory := range memories {
				if memory%2 == 0 {
					wantEven++
				}
			}
			equal(t, when+": memories with vectors, and those selected", fmt.Sprint(with, even, err, err2),
				fmt.Sprint(len(memories), wantEven, nil, nil))
		}
		return nil
	})
}
