package systemtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/testing/storetest"
	"github.com/souvenir-ai/souvenir/internal/text"
	"github.com/souvenir-ai/souvenir/internal/vectorform"
)

// With user keys, searches read sealed or blinded data, and find the same as without keys.

func TestSearchesWithUserKeys(t *testing.T) {
	onEachEngine(t, func(t *testing.T, empty database) {
		if empty.name() == "walled" {
			t.Skip("the wall hides rows, and keys are not in rows")
		}
		tests := map[string]func(*safe){
			"searches find the same as without keys":               sameFound,
			"no term and no vector is in the tables":               nothingToRead,
			"words of two users have nothing in common":            wordsOfTwo,
			"check finds damaged vectors and words, and repairs":   damagedSearch,
			"what was given to others is found without the giver":  givenIsFound,
			"a partition that gets its owner back is sealed again": ownerGetsPartition,
		}
		for _, name := range longtest.Keys(tests, 1, 6) {
			t.Run(name, func(t *testing.T) { tests[name](newSafe(t, empty)) })
		}
	})
}

// garden are the memories of a user.
var garden = []NewMemory{
	{Content: "The roses by the gate need water at dawn.", Tags: []string{"Roses", "water"}},
	{Content: "The code of the garden gate is 4711; the ID of the pump is PUMP-2291."},
	{Content: "水泵在花园门口，早上浇玫瑰。", Tags: []string{"花园"}},
	{Content: "Compost: leaves, grass, no citrus. Turn it every week."},
	{Content: "The pump was serviced by Zwicky in March.", Tags: []string{"pump"}},
	{Content: "water water water"},
}

var gardenQueries = []Query{
	{Text: "water for the roses"}, {Text: "PUMP-2291"}, {Text: "玫瑰"}, {Text: "gate", Tags: []string{"roses"}},
	{Text: "zwicky"}, {Text: "water"}, {Text: "pump water", MinScore: 0.5}, {Text: "gate code", Limit: 1},
	{Text: "nothing of the kind"}, {Text: "x\x7f y\"(*) OR"},
}

func (s *safe) fill(store *Store) (ids []string) {
	s.Helper()
	for _, m := range garden {
		ids = append(ids, mustAdd(s, store, m).ID)
	}
	return ids
}

// found lists the results of queries, with those numbers of their scores that do not depend on the way of computing.
func (s *safe) found(store *Store) string {
	s.Helper()
	var all strings.Builder
	for _, q := range gardenQueries {
		q.Explain = true
		results, err := store.Search(s.Context(), q)
		if err != nil {
			s.Fatalf("Search %+v: %v", q, err)
		}
		fmt.Fprintf(&all, "%s:\n", q.Text)
		for _, r := range results.Hits {
			fmt.Fprintf(&all, "\t%.4f %s\n", r.Score, r.Content)
		}
	}
	return all.String()
}

func sameFound(s *safe) {
	without := &safe{T: s.T, in: emptyInFile(s)}
	bare := without.open(without.in, nil, Options{})
	s.fill(s.store)
	s.fill(bare)
	want := s.found(bare)
	if strings.Count(want, "\t") < 8 {
		s.Fatalf("without keys the queries find only %s, want 8", want)
	}
	onDisk := s.open(s.in, s.ring, Options{IndexMemory: -1})
	for where, store := range map[string]*Store{"in memory": s.store, "on disk": onDisk} {
		if got := s.found(store); got != want {
			s.Errorf("%s: got\n%s\nwant, as without keys,\n%s", where, got, want)
		}
	}
	s.wantSound(s.store)
}

// storedTerms returns the full-text terms and the vectors as they are stored.
func (s *safe) storedTerms() (terms map[string]int, vectors [][]byte) {
	s.Helper()
	engine, err := s.in.engine(true)
	if err != nil {
		s.Fatal(err)
	}
	defer engine.Close()
	terms = map[string]int{}
	err = db.Scratch(s.Context(), engine, func(tx db.Tx) error {
		if vectors, err = db.Column[[]byte](tx, `SELECT vector FROM passage WHERE vector IS NOT NULL`); err != nil {
			return err
		}
		return tx.Words().Each(func(_ int64, column string, _ int, term string) error {
			if column != "" { // otherwise it is the passage itself
				terms[term]++
			}
			return nil
		})
	})
	if err != nil {
		s.Fatal(err)
	}
	return terms, vectors
}

func nothingToRead(s *safe) {
	s.fill(s.store)
	if err := s.store.Upkeep().StoreIndex(s.Context()); err != nil {
		s.Fatal(err)
	}
	terms, vectors := s.storedTerms()
	if len(terms) < 20 || len(vectors) != len(garden) {
		s.Fatalf("got %d terms and %d vectors: the test looks in the wrong place, want more", len(terms), len(vectors))
	}
	for _, m := range garden {
		for _, term := range text.Terms(m.Content + "\n" + strings.Join(m.Tags, "\n")) {
			if terms[term] > 0 {
				s.Errorf("full text has the term %s, want it blinded", term)
			}
		}
		embedded, err := storetest.Words{}.Embed(s.Context(), ForDocument, []string{m.Content})
		if err != nil {
			s.Fatal(err)
		}
		unit, err := kernel.UnitVector(embedded[0], len(embedded[0]))
		if err != nil {
			s.Fatal(err)
		}
		for _, v := range [][]float32{embedded[0], unit} {
			for _, secret := range [][]byte{vectorform.Exact(v), vectorform.Short(v)} {
				if slices.ContainsFunc(vectors, func(stored []byte) bool { return bytes.Contains(stored, secret) }) {
					s.Errorf("the vector of %q is stored unsealed, want it sealed", m.Content)
				}
			}
		}
	}
	for _, v := range vectors {
		if _, is := sealedrows.SealedBytes(sealedrows.PassageVector, v); !is {
			s.Errorf("a vector is stored in %d bytes unsealed, want it sealed", len(v))
		}
	}
}

func wordsOfTwo(s *safe) {
	s.fill(s.user("ann"))
	before, _ := s.storedTerms()
	s.fill(s.user("ben"))
	after, _ := s.storedTerms()
	if len(after) != 2*len(before) {
		s.Errorf("two users have %d terms, one has %d of the same texts; want twice as many", len(after), len(before))
	}
	for term, n := range before {
		if after[term] != n {
			s.Errorf("the term %s: got it %d times with the second user, want %d as before", term, after[term], n)
		}
	}
}

// change writes to the database without the store.
func (s *safe) change(what string, fn func(tx db.Tx) error) {
	s.Helper()
	engine, err := s.in.engine(false)
	if err != nil {
		s.Fatal(err)
	}
	defer engine.Close()
	if err := engine.Write(s.Context(), fn); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

func damagedSearch(s *safe) {
	s.fill(s.store)
	want := s.found(s.store)
	s.wantSound(s.store)
	for what, damage := range map[string]func(tx db.Tx, passage int64, vector []byte) error{
		"a byte of a vector": func(tx db.Tx, passage int64, vector []byte) error {
			vector[len(vector)-1] ^= 1
			_, err := tx.Exec(`UPDATE passage SET vector = ? WHERE id = ?`, vector, passage)
			return err
		},
		"words that are gone": func(tx db.Tx, passage int64, _ []byte) error { return tx.Words().Drop(passage) },
		"words that are not blinded": func(tx db.Tx, passage int64, _ []byte) error {
			return tx.Words().Put(passage, text.Indexed(garden[0].Content), "", true)
		},
		"all words": func(tx db.Tx, _ int64, _ []byte) error { return tx.Words().Clear() },
	} {
		s.change(what, func(tx db.Tx) error {
			var id int64
			var vector []byte
			if err := tx.QueryRow(`SELECT id, vector FROM passage WHERE vector IS NOT NULL ORDER BY id LIMIT 1`).
				Scan(&id, &vector); err != nil {
				return err
			}
			return damage(tx, id, vector)
		})
		if report := s.check(s.store, nil); report.OK {
			s.Errorf("%s: the check finds nothing, want a finding", what)
		}
		if report := s.check(s.store, &CheckOptions{Repair: true}); !report.OK {
			s.Errorf("%s: after the repair, got %+v, want all repaired", what, report.Findings)
		}
		eventually(s, s.store)
		s.wantSound(s.store)
		for where, memory := range map[string]int64{"in memory": 0, "on disk": -1} {
			if got := s.found(s.open(s.in, s.ring, Options{IndexMemory: memory})); got != want {
				s.Errorf("%s, repaired, %s: got\n%s\nwant, as before,\n%s", what, where, got, want)
			}
		}
	}
	if terms, _ := s.storedTerms(); terms["water"] > 0 {
		s.Error("after the repairs full text has the term water, want it blinded")
	}
}

// eventually waits until all passages have vectors.
func eventually(s *safe, store *Store) {
	s.Helper()
	if err := store.Upkeep().WaitEmbedded(context.WithoutCancel(s.Context())); err != nil {
		s.Fatal(err)
	}
}

func givenIsFound(s *safe) {
	ann, ben := s.user("ann"), s.user("ben")
	if _, err := ben.AddProject(s.Context(), NewProject{ID: "garden"}); err != nil {
		s.Fatal(err)
	}
	annID := mustAddFile(s, ann, NewFile{}, "x").Owner
	project := mustAddFile(s, ben, NewFile{}, "x").Owner + "/garden"
	if _, err := s.store.AddMember(s.Context(), NewMember{Project: ProjectRef{ID: project}, User: annID,
		Role: MemberWriter}); err != nil {
		s.Fatal(err)
	}
	for _, id := range s.fill(ann) {
		if _, err := ann.UpdateMemory(s.Context(), id, MemoryUpdate{ProjectID: &project}); err != nil {
			s.Fatal(err)
		}
	}
	want := s.found(ben)
	if strings.Count(want, "\t") < 8 {
		s.Fatalf("ben finds only %s, want 8", want)
	}
	s.deleteUser("ann")
	for where, memory := range map[string]int64{"in memory": 0, "on disk": -1} {
		store := s.open(s.in, s.ring, Options{IndexMemory: memory})
		if got := s.found(store.As(Access{User: strings.TrimSuffix(project, "/garden")})); got != want {
			s.Errorf("%s, without the giver: got\n%s\nwant\n%s", where, got, want)
		}
	}
	s.wantSound(s.store)
}

// ownerGetsPartition makes a check give a partition to the owner of its project.
func ownerGetsPartition(s *safe) {
	ann, ben := s.user("ann"), s.user("ben")
	if _, err := ben.AddProject(s.Context(), NewProject{ID: "garden"}); err != nil {
		s.Fatal(err)
	}
	s.fill(ann)
	benID := mustAddFile(s, ben, NewFile{}, "x").Owner
	s.change("a partition in a project of another user", func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE partition SET project_id = (SELECT id FROM project) WHERE passages > 0`)
		return err
	})
	if report := s.check(s.store, &CheckOptions{Repair: true}); !report.OK || report.Repaired == 0 {
		s.Fatalf("Check: got %+v, want the partition given to the owner of the project", report)
	}
	s.deleteUser("ann")
	ofBen := s.open(s.in, s.ring, Options{IndexMemory: -1}).As(Access{User: benID})
	if got := s.found(ofBen); strings.Count(got, "\t") < 8 {
		s.Errorf("ben finds only %s, want 8", got)
	}
	s.wantSound(s.store)
}
