package souvenir

import (
	"fmt"
	"path/filepath"
	"testing"
)

// benchTalk opens a store in a file with a conversation of the given number of turns.
func benchTalk(b *testing.B, turns int) *Conversation {
	b.Helper()
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "talk.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	c := s.Conversation("talk")
	for done := 0; done < turns; done += MaxTurns {
		if _, err := c.Append(b.Context(), talkOf(done, min(MaxTurns, turns-done))...); err != nil {
			b.Fatal(err)
		}
	}
	return c
}

// talkOf returns n turns of about 20 words, numbered from first.
func talkOf(first, n int) []Turn {
	turns := make([]Turn, n)
	for i := range turns {
		turns[i] = Turn{Role: "user", Content: fmt.Sprintf("Turn %d: the boat leaves the harbour at %d, and Anna brings "+
			"bread, cheese and a map of the coast.", first+i, (first+i)%24)}
	}
	return turns
}

func BenchmarkAppendTurn(b *testing.B) {
	c := benchTalk(b, 0)
	for i := 0; b.Loop(); i++ {
		if _, err := c.Append(b.Context(), talkOf(i, 1)...); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend100Turns(b *testing.B) {
	c := benchTalk(b, 0)
	for i := 0; b.Loop(); i++ {
		if _, err := c.Append(b.Context(), talkOf(100*i, 100)...); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLongConversation(b *testing.B) {
	c := benchTalk(b, 100_000)
	b.Run("Last 20", func(b *testing.B) {
		for b.Loop() {
			if last, err := c.Last(b.Context(), 20); err != nil || len(last) != 20 {
				b.Fatalf("got %d turns, %v, want 20 and no error", len(last), err)
			}
		}
	})
	b.Run("Window 2000", func(b *testing.B) {
		for b.Loop() {
			if window, err := c.Window(b.Context(), 2000); err != nil || len(window) == 0 {
				b.Fatalf("got %v %v, want no error and a window that is not empty", len(window), err)
			}
		}
	})
	b.Run("Append", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := c.Append(b.Context(), talkOf(i, 1)...); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Conversations", func(b *testing.B) {
		for b.Loop() {
			for _, err := range c.store.Conversations(b.Context(), ConversationList{}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
