package souvenir_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// BenchmarkBesideImport measures single stores and searches in a store of 10,000 memories: 1,000 of each alone, and as
// many as there are while another 30,000 are imported. go test -run '^$' -bench BesideImport -benchtime 1x .
func BenchmarkBesideImport(b *testing.B) {
	var export bytes.Buffer
	other := openBench(b, 1)
	if _, err := other.AddMemories(b.Context(), sentences(30_000), nil); err != nil {
		b.Fatal(err)
	}
	if _, err := other.Upkeep().Export(b.Context(), &export, nil); err != nil {
		b.Fatal(err)
	}
	queries := sentences(500)
	for _, beside := range []string{"alone", "import"} {
		b.Run(beside, func(b *testing.B) {
			for b.Loop() {
				store := openBench(b, 10_000)
				var stores, searches []time.Duration
				one := func(i int) {
					m := queries[i%len(queries)]
					began := time.Now()
					if _, err := store.AddMemory(b.Context(), m); err != nil {
						b.Error(err)
					}
					stored := time.Now()
					text := strings.Join(strings.Fields(m.Content)[:8], " ")
					if _, err := store.Search(b.Context(), souvenir.Query{Text: text}); err != nil {
						b.Error(err)
					}
					stores, searches = append(stores, stored.Sub(began)), append(searches, time.Since(stored))
					time.Sleep(time.Millisecond)
				}
				if beside == "alone" {
					for i := range 1000 {
						one(i)
					}
				} else {
					took := besideImport(b, store, export.Bytes(), one)
					b.ReportMetric(30_000/took.Seconds(), "imported/s")
				}
				reportTimes(b, "store", stores)
				reportTimes(b, "search", searches)
			}
		})
	}
}

// besideImport calls one again and again until an export is imported, and returns how long that took.
func besideImport(b *testing.B, store *souvenir.Store, export []byte, one func(int)) time.Duration {
	b.Helper()
	took := make(chan time.Duration, 1)
	go func() {
		began := time.Now()
		if _, err := store.Upkeep().Import(b.Context(), bytes.NewReader(export), nil); err != nil {
			b.Error(err)
		}
		took <- time.Since(began)
	}()
	for i := 0; ; i++ {
		select {
		case t := <-took:
			return t
		default:
			one(i)
		}
	}
}

// reportTimes adds the median, the p99 and the longest of single durations.
func reportTimes(b *testing.B, what string, took []time.Duration) {
	slices.Sort(took)
	for name, at := range map[string]int{"median": len(took) / 2, "p99": len(took) * 99 / 100, "max": len(took) - 1} {
		b.ReportMetric(float64(took[at].Microseconds())/1000, "ms-"+what+"-"+name)
	}
}
