package main

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// The first pages are prepared for users of the last days, and for no others.
func TestPagesAreWarmedForThoseSeenLast(t *testing.T) {
	store, err := souvenir.Open(t.Context(), filepath.Join(t.TempDir(), "warm.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	now := time.Now()
	var seen []string
	for _, name := range []string{"anna", "ben", "carl"} {
		user, err := store.Accounts().AddUser(t.Context(), souvenir.NewUser{Name: name, Password: "nine blue kettles"})
		if err != nil {
			t.Fatal(err)
		}
		view := store.As(souvenir.Access{User: user.ID})
		memory := souvenir.NewMemory{Content: "We deploy on Thursdays", Tags: []string{"deploy"},
			Metadata: map[string]any{"source": "chat"}}
		for range 3 {
			if _, err := view.AddMemory(t.Context(), memory); err != nil {
				t.Fatal(err)
			}
		}
		if name == "carl" {
			continue // has never signed in
		}
		session, err := store.Accounts().AddSignIn(t.Context(), souvenir.NewSignIn{User: name})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Accounts().CheckSignIn(t.Context(), session.Value); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, user.ID)
	}
	warmed, err := warm(t.Context(), store, now)
	slices.Sort(warmed)
	slices.Sort(seen)
	if err != nil || !slices.Equal(warmed, seen) {
		t.Errorf("got %q, %v, want %q", warmed, err, seen)
	}
	if warmed, err := warm(t.Context(), store, now.Add(warmedSince+time.Hour)); err != nil || len(warmed) != 0 {
		t.Errorf("days later: got %q, %v, want none", warmed, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if warmed, err := warm(t.Context(), store, now); err == nil {
		t.Errorf("of a closed store: got %q and no error, want one", warmed)
	}
}

func TestUsualKeysAreThoseOfMostMemories(t *testing.T) {
	var hits []souvenir.Hit
	for i := range 100 {
		metadata := map[string]any{"source": "mail", "rare": i}
		if i > 0 {
			delete(metadata, "rare")
		}
		if i%2 == 0 {
			metadata["confidence"] = 1
		}
		hits = append(hits, souvenir.Hit{Memory: souvenir.Memory{Metadata: metadata}})
	}
	if got := usualKeys(hits); !slices.Equal(got, []string{"source", "confidence"}) {
		t.Errorf("got %q, want source and confidence", got)
	}
	if got := usualKeys(nil); len(got) != 0 {
		t.Errorf("of no memories: got %q, want none", got)
	}
}
