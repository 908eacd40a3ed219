package extract_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
)

// remember adds memories one after another.
func remember(t *testing.T, store *souvenir.Store, texts ...string) (ids []string) {
	t.Helper()
	for _, text := range texts {
		m, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: text})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID)
	}
	return ids
}

func consolidate(t *testing.T, l *extract.Learner) extract.Report {
	t.Helper()
	r, err := l.Consolidate(t.Context())
	if err != nil {
		t.Fatalf("got the error %v, want none", err)
	}
	return r
}

func TestNearDuplicatesAndContradictionsAreOfferedAndNothingIsChanged(t *testing.T) {
	store := open(t)
	ids := remember(t, store, "The deployment runs every Thursday at noon.", "The deployment runs each Thursday at noon.",
		"Ben plays the cello.", "Anna works in Kiel.", "Anna works in Bremen.", "Cleo likes fish.",
		"Cleo does not likes fish.",
		"Ben works in Kiel.")
	_, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: "Anna works in Kiel.", ProjectID: "p"})
	if err != nil {
		t.Fatal(err)
	}
	l := learner(t, store, extract.Options{})
	r := consolidate(t, l)
	var forget []string
	for _, p := range r.Kept {
		if p.Proposal.Action != extract.Forget || p.Proposal.Group == "" || p.Proposal.Reason == "" {
			t.Errorf("got %+v, want that a memory of a group is to be forgotten, with a reason", p)
		}
		forget = append(forget, p.Proposal.Target)
	}
	want := []string{ids[1], ids[3]}
	if got := slices.Contains(forget, want[0]); !got || !slices.Contains(forget, want[1]) {
		t.Errorf("got %v, want the shorter duplicate and the older contradiction, %v, among them", forget, want)
	}
	if slices.Contains(forget, ids[2]) || slices.Contains(forget, ids[7]) {
		t.Errorf("got %v, want nothing of memories about others", forget)
	}
	if got := facts(t, store, inDefault); len(got) != 9 {
		t.Errorf("got %q, want all 9 still there", got)
	}
	if again := consolidate(t, l); len(again.Kept) != 0 {
		t.Errorf("again: got %+v, want nothing that waits already", again.Kept)
	}
	if err := l.Refuse(t.Context(), r.Kept[0].ID); err != nil {
		t.Fatal(err)
	}
	if again := consolidate(t, l); len(again.Kept) != 0 {
		t.Errorf("after a refusal: got %+v, want nothing", again.Kept)
	}
	for p, err := range l.Pending(t.Context()) {
		if err != nil || p.ID == r.Kept[0].ID {
			t.Errorf("got %+v and the error %v, want no refused proposal", p, err)
		}
	}
	if _, err := l.Accept(t.Context(), r.Kept[0].ID, ""); !errors.Is(err, souvenir.ErrNotFound) {
		t.Errorf("got the error %v, want ErrNotFound for a refused proposal", err)
	}
	if _, err := l.Accept(t.Context(), r.Kept[1].ID, ""); err != nil {
		t.Errorf("got the error %v, want none", err)
	}
	if got := facts(t, store, inDefault); len(got) != 8 {
		t.Errorf("got %q, want 8", got)
	}
}

func TestAModelProposesChangesToAGroup(t *testing.T) {
	store := open(t)
	ids := remember(t, store, "The deployment runs every Thursday at noon.", "The deployment runs each Thursday at noon.")
	m := newModel(t, func(d document) any {
		if len(d.Known) != 2 || len(d.Turns) != 0 {
			t.Errorf("got %+v, want 2 memories and no turns", d)
		}
		return []proposal{{"update", "The deployment runs every Thursday at noon sharp.", 1, []int{}, "More exact.", 0.8},
			{"forget", "", 2, []int{}, "Merged.", 0.8}, {"forget", "", 7, []int{}, "Hostile.", 1}, {"forget", "", 1, nil,
				"Both.", 1},
			{"add", "New.", 0, []int{}, "Hostile.", 1}}
	})
	l := learner(t, store, extract.Options{Extractor: m.messages(t), MaxCalls: 1})
	r := consolidate(t, l)
	if len(r.Kept) != 2 || len(r.Refused) != 3 || r.Usage.Calls != 1 {
		t.Fatalf("got %+v, want 2 kept and 3 refused", r)
	}
	for _, p := range r.Kept {
		if _, err := l.Accept(t.Context(), p.ID, ""); err != nil {
			t.Errorf("accept %s: got the error %v, want none", p.Proposal.Action, err)
		}
	}
	got, err := store.GetMemory(t.Context(), ids[0])
	if err != nil || !strings.HasSuffix(got.Content, "sharp.") {
		t.Errorf("got %q and the error %v, want the merged text", got.Content, err)
	}
	if _, err := store.GetMemory(t.Context(), ids[1]); !errors.Is(err, souvenir.ErrNotFound) {
		t.Errorf("got the error %v, want ErrNotFound", err)
	}
}

// weekly are two texts that say the same.
var weekly = []string{"The deployment runs every Thursday at noon.", "The deployment runs each Thursday at noon."}

func TestATagOfAMemoryMakesNoSecondProposalAboutIt(t *testing.T) {
	store := open(t)
	ids := remember(t, store, weekly...)
	l := learner(t, store, extract.Options{})
	tagged := func(tag string) {
		t.Helper()
		for _, id := range ids {
			if _, err := store.UpdateMemory(t.Context(), id, souvenir.MemoryUpdate{Tags: &[]string{tag}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := consolidate(t, l)
	tagged("a")
	if r := consolidate(t, l); len(first.Kept) != 1 || len(r.Kept) != 0 || len(waiting(t, store)) != 1 {
		t.Errorf("while one waits: got %+v, want no further proposal", r)
	}
	if err := l.Refuse(t.Context(), first.Kept[0].ID); err != nil {
		t.Fatal(err)
	}
	tagged("b")
	if r := consolidate(t, l); len(r.Kept) != 0 {
		t.Errorf("after one was refused: got %+v, want no further proposal", r)
	}
}

func TestAReportHasNoProposalsThatWereNotStored(t *testing.T) {
	left := 1
	store, err := souvenir.Open(t.Context(), ":memory:", &souvenir.Options{Hooks: []souvenir.Hooks{{
		BeforeStore: func(_ context.Context, _ souvenir.Operation, m *souvenir.NewMemory) error {
			if strings.Contains(m.EventType, "proposal") {
				if left--; left < 0 {
					return errors.New("enough")
				}
			}
			return nil
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	remember(t, store, append(weekly, "The deployment runs every Thursday at noon!")...)
	r, err := learner(t, store, extract.Options{}).Consolidate(t.Context())
	if !errors.Is(err, souvenir.ErrForbidden) || len(r.Kept) != 0 || len(waiting(t, store)) != 0 {
		t.Errorf("got %+v and the error %v, want ErrForbidden and no proposal", r, err)
	}
}

func TestConsolidationMakesNothingOutdatedValidAgain(t *testing.T) {
	store := open(t)
	ids := remember(t, store, "Anna works in Kiel.", "The lake is deep.")
	for i, content := range []string{"Anna works in Bremen.", "The lake is very deep in the middle."} {
		m, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: content, Supersedes: ids[i]})
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = m.ID
	}
	remember(t, store, "Anna works in Oslo.")
	if r := consolidate(t, learner(t, store, extract.Options{})); len(r.Kept) != 0 {
		t.Errorf("by similarity: got %+v, want no proposal to forget Bremen, since Kiel would be valid again", r.Kept)
	}
	m := newModel(t, func(d document) any { return []proposal{{"forget", "", 1, []int{}, "She moved.", 0.9}} })
	l := learner(t, store, extract.Options{Extractor: m.chat(t)})
	if r := consolidate(t, l); len(r.Kept) != 0 || len(r.Refused) != 1 || r.Refused[0].Proposal.Target != ids[0] {
		t.Errorf("by a model: got %+v, want its proposal about Bremen refused", r)
	}
	if consolidate(t, l); m.count() != 1 {
		t.Errorf("again: got %d requests, want 1", m.count())
	}
}

func TestOfTwoThatSayTheSameOneStays(t *testing.T) {
	said := []string{"The deployment runs each Thursday at noon.", "The deployment runs every Thursday at noon."}
	changes := map[string]func(*souvenir.Store, string) error{
		"deleted": func(s *souvenir.Store, id string) error { return s.DeleteMemory(t.Context(), id, nil) },
		"superseded": func(s *souvenir.Store, id string) error {
			_, err := s.AddMemory(t.Context(), souvenir.NewMemory{Content: "Nothing is deployed.", Supersedes: id})
			return err
		},
		"no longer valid": func(s *souvenir.Store, id string) error {
			end := time.Now().Add(-time.Hour)
			_, err := s.UpdateMemory(t.Context(), id, souvenir.MemoryUpdate{ValidUntil: &end})
			return err
		},
	}
	for name, change := range changes {
		for by, e := range map[string]func() extract.Extractor{
			"similarity": func() extract.Extractor { return nil },
			"a model": func() extract.Extractor {
				return newModel(t, func(document) any { return []proposal{{"forget", "", 1, []int{}, "The same.", 0.9}} }).chat(t)
			},
		} {
			t.Run(name+" "+by, func(t *testing.T) {
				store := open(t)
				ids := remember(t, store, said...)
				l := learner(t, store, extract.Options{Extractor: e()})
				kept := consolidate(t, l).Kept
				if len(kept) != 1 || kept[0].Proposal.Target != ids[0] {
					t.Fatalf("got %+v, want one proposal, to forget %s", kept, ids[0])
				}
				if err := change(store, ids[1]); err != nil {
					t.Fatal(err)
				}
				if w := waiting(t, store)[0]; !strings.Contains(w.Conflict, "would stay") || w.Target == nil {
					t.Errorf("got the conflict %q and the target %v, want one with the other memory", w.Conflict, w.Target)
				}
				if _, err := l.Accept(t.Context(), kept[0].ID, ""); !errors.Is(err, souvenir.ErrConflict) {
					t.Errorf("got the error %v, want ErrConflict", err)
				}
				if got := facts(t, store, inDefault); !slices.Contains(got, said[0]) {
					t.Errorf("got %q, want %q among them", got, said[0])
				}
			})
		}
	}
}

func TestAMergeInTwoProposalsIsAcceptedInAnyOrder(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		store := open(t)
		remember(t, store, weekly...)
		m := newModel(t, func(document) any {
			return []proposal{{"supersede", "The deployment runs every Thursday at noon sharp.", 1, []int{}, "", 0.8},
				{"forget", "", 2, []int{}, "Merged.", 0.8}}
		})
		l := learner(t, store, extract.Options{Extractor: m.chat(t)})
		kept := consolidate(t, l).Kept
		for _, i := range order {
			if _, err := l.Accept(t.Context(), kept[i].ID, ""); err != nil {
				t.Errorf("accept %d of %v: got the error %v, want none", i, order, err)
			}
		}
		if got := facts(t, store, inDefault); len(got) != 1 || !strings.HasSuffix(got[0], "sharp.") {
			t.Errorf("got %q, want the merged text alone", got)
		}
	}
}

// pausing is a Consolidator that calls a function before it answers.
type pausing struct {
	extract.Consolidator
	pause func()
}

func (p pausing) Extract(context.Context, extract.Conversation) (x extract.Extraction, err error) {
	return x, nil
}

func (p pausing) Consolidate(ctx context.Context, group []souvenir.Memory) (extract.Extraction, error) {
	p.pause()
	return extract.Extraction{Proposals: []extract.Proposal{{Action: extract.Forget, Target: group[0].ID}}}, nil
}

func TestTwoConsolidationsAtOnceKeepAProposalOnce(t *testing.T) {
	store := open(t)
	remember(t, store, weekly...)
	second := learner(t, store, extract.Options{Extractor: pausing{pause: func() {}}})
	first := learner(t, store, extract.Options{Extractor: pausing{pause: func() {
		if r := consolidate(t, second); len(r.Kept) != 1 {
			t.Errorf("the second: got %+v, want one kept", r)
		}
	}}})
	if r := consolidate(t, first); len(r.Kept) != 0 || len(waiting(t, store)) != 1 {
		t.Errorf("the first: got %+v and %d waiting, want none kept and 1", r, len(waiting(t, store)))
	}
}
