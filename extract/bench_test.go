package extract_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
)

// BenchmarkLearn200Turns learns from a conversation of 200 turns, half of which have a fact, into a store with 2,000
// memories. The model answers at once, so the time is that of everything else.
func BenchmarkLearn200Turns(b *testing.B) {
	m := newModel(b, factual)
	for b.Loop() {
		b.StopTimer()
		store, err := souvenir.Open(b.Context(), filepath.Join(b.TempDir(), "s.db"), nil)
		if err != nil {
			b.Fatal(err)
		}
		memories := make([]souvenir.NewMemory, 2000)
		for i := range memories {
			memories[i].Content = fmt.Sprintf("Room %d is painted in the colour %d since the year %d.", i, i*7%31, 1900+i%120)
		}
		if _, err := store.AddMemories(b.Context(), memories, nil); err != nil {
			b.Fatal(err)
		}
		turns := make([]souvenir.Turn, 200)
		for i := range turns {
			turns[i] = souvenir.Turn{Role: "user", Content: fmt.Sprintf("Fact: Person %d moved to house %d in street %d.", i,
				i*7919%997, i*31%89)}
			if i%2 == 1 {
				turns[i] = souvenir.Turn{Role: "assistant", Content: "Thank you, I will keep that in mind for the next time."}
			}
		}
		if _, err := store.Conversation("talk").Append(b.Context(), turns...); err != nil {
			b.Fatal(err)
		}
		l, err := extract.New(store, extract.Options{Extractor: m.chat(b)})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		r, err := l.Learn(b.Context(), "talk")
		b.StopTimer()
		if err != nil || r.Turns != 200 {
			b.Fatalf("got %d turns, %d applied and the error %v, want 200 turns", r.Turns, len(r.Applied), err)
		}
		b.ReportMetric(float64(r.Usage.Calls), "calls/op")
		b.ReportMetric(float64(len(r.Applied)), "facts/op")
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
