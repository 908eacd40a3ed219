package extract_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
)

func TestProposalsWaitForReview(t *testing.T) {
	store, m := open(t), newModel(t, factual)
	ctx := t.Context()
	say(t, store, souvenir.ConversationPlace{}, "Fact: Anna works in Kiel.", "Fact: Ben plays the cello.",
		"Fact: Cleo is a cat.")
	l := learner(t, store, extract.Options{Extractor: m.chat(t), Review: true})
	if r := learn(t, l); len(r.Kept) != 3 || len(r.Applied) != 0 {
		t.Fatalf("got %+v, want 3 kept", r)
	}
	if got := facts(t, store, inDefault); len(got) != 0 {
		t.Errorf("got %q, want nothing before the review", got)
	}
	pending := func(l *extract.Learner) (all []extract.Pending) {
		t.Helper()
		for p, err := range l.Pending(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
		return all
	}
	all := pending(l)
	if len(all) != 3 || all[0].Proposal.Content != "Anna works in Kiel." || all[0].Conversation != "talk" {
		t.Fatalf("got %+v, want the 3 proposals in order", all)
	}
	if done, err := l.Accept(ctx, all[0].ID, ""); err != nil || done.Memory == "" {
		t.Errorf("accept: got %+v and the error %v, want a memory", done, err)
	}
	if _, err := l.Accept(ctx, all[1].ID, "Ben plays the viola."); err != nil {
		t.Errorf("accept with an edit: got the error %v, want none", err)
	}
	if err := l.Refuse(ctx, all[2].ID); err != nil {
		t.Errorf("refuse: got the error %v, want none", err)
	}
	for _, id := range []string{all[0].ID, all[2].ID} {
		if _, err := l.Accept(ctx, id, ""); !errors.Is(err, souvenir.ErrNotFound) {
			t.Errorf("a second time: got the error %v, want ErrNotFound", err)
		}
	}
	want := []string{"Anna works in Kiel.", "Ben plays the viola."}
	if got := facts(t, store, inDefault); !slices.Equal(got, want) || len(pending(l)) != 0 {
		t.Errorf("got %q and %d pending, want %q and none", got, len(pending(l)), want)
	}
	plain, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "Anna likes tea."})
	if err != nil {
		t.Fatal(err)
	}
	say(t, store, souvenir.ConversationPlace{}, "Anna no longer likes tea.")
	own := learner(t, store, extract.Options{Extractor: propose(extract.Proposal{Action: extract.Forget,
		Target: plain.ID})})
	if r := learn(t, own); len(r.Kept) != 1 || len(r.Applied) != 0 {
		t.Fatalf("got %+v, want a proposal about a memory that was not learned to wait", r)
	}
	ben := learner(t, store.As(souvenir.Access{User: "ben"}), extract.Options{})
	if got := pending(ben); len(got) != 0 {
		t.Errorf("got %+v for another user, want nothing", got)
	}
	id := pending(own)[0].ID
	if _, err := ben.Accept(ctx, id, ""); !errors.Is(err, souvenir.ErrNotFound) {
		t.Errorf("another user: got the error %v, want ErrNotFound", err)
	}
	if _, err := own.Accept(ctx, id, "text"); !errors.Is(err, souvenir.ErrInvalid) {
		t.Errorf("content to forget: got the error %v, want ErrInvalid", err)
	}
	changed := "Anna likes green tea."
	if _, err := store.UpdateMemory(ctx, plain.ID, souvenir.MemoryUpdate{Content: &changed}); err != nil {
		t.Fatal(err)
	}
	if _, err := own.Accept(ctx, id, ""); !errors.Is(err, souvenir.ErrConflict) || len(pending(own)) != 1 {
		t.Errorf("a changed target: got the error %v and %d pending, want ErrConflict and 1", err, len(pending(own)))
	}
}
