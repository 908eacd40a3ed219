package souvenir_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// What the pages of a dashboard read, at 100,000 memories with 100,000 recorded calls:
//
//	go test -run '^$' -bench Dashboard -benchtime 3s .

func BenchmarkDashboard(b *testing.B) {
	ctx := context.Background()
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	clock := now.Add(-60 * 24 * time.Hour)
	path := filepath.Join(b.TempDir(), "bench.db")
	options := &souvenir.Options{Now: func() time.Time { return clock }}
	store, err := souvenir.Open(ctx, path, options)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { store.Close() }()
	random := rand.New(rand.NewPCG(1, 2))
	all, types, last := sentences(100_000), []string{"decision", "case", "note", "conversation", ""}, ""
	for part := range 100 {
		batch := all[part*1000 : (part+1)*1000]
		for i := range batch {
			batch[i].EventType = types[random.IntN(len(types))]
			if random.IntN(3) > 0 {
				batch[i].ProjectID = fmt.Sprint("project", random.IntN(10))
			}
			if last != "" && random.IntN(4) == 0 {
				batch[i].Related = []string{last}
			}
		}
		stored, err := store.AddMemories(ctx, batch, nil)
		if err != nil {
			b.Fatal(err)
		}
		last = stored[0].ID
		for i := range 1000 {
			if err := store.Upkeep().RecordActivity(ctx,
				souvenir.NewActivity{Client: fmt.Sprint("client ", i%7), Tool: "memory", Action: "search"}); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := store.Insights().Activities(ctx, souvenir.ActivityQuery{Limit: 1}); err != nil {
			b.Fatal(err)
		}
		clock = clock.Add(14 * time.Hour)
	}
	for {
		o, err := store.Insights().Overview(ctx, souvenir.OverviewQuery{})
		if err != nil {
			b.Fatal(err)
		}
		if o.Index == souvenir.IndexInMemory {
			break
		}
		if _, err := store.Search(ctx, souvenir.Query{Text: "ka lo"}); err != nil {
			b.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	measure := func(name string, call func() error) {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if err := call(); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			reportMedian(b, took)
		})
	}
	measure("overview", func() error { _, err := store.Insights().Overview(ctx, souvenir.OverviewQuery{}); return err })
	measure("graph of 5,000", func() error {
		_,
			err := store.Insights().Graph(ctx, souvenir.GraphQuery{Limit: 5000})
		return err
	})
	measure("graph of 5,000, filtered", func() error {
		_, err := store.Insights().Graph(ctx,
			souvenir.GraphQuery{Limit: 5000, List: souvenir.List{Filter: souvenir.Filter{"event_type": "decision"}}})
		return err
	})
	measure("map of 5,000", func() error { _, err := store.Insights().Map(ctx, souvenir.MapQuery{}); return err })
	measure("activity", func() error { _, err := store.Insights().Activities(ctx, souvenir.ActivityQuery{}); return err })
	measure("activity, failed", func() error {
		_, err := store.Insights().Activities(ctx, souvenir.ActivityQuery{Outcome: souvenir.OutcomeError})
		return err
	})
}
