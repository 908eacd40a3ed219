package souvenir_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func BenchmarkBackup(b *testing.B) {
	store := openBench(b, 20_000)
	dir := b.TempDir()
	var took []time.Duration
	var size int64
	for i := 0; b.Loop(); i++ {
		path := filepath.Join(dir, fmt.Sprint(i, ".db"))
		start := time.Now()
		if err := store.Upkeep().Backup(context.Background(), path, nil); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		size = info.Size()
		_ = os.Remove(path)
	}
	slices.Sort(took)
	b.ReportMetric(float64(size)/1e6/took[len(took)/2].Seconds(), "MB/s")
}

func BenchmarkCheck(b *testing.B) {
	store := openBench(b, 10_000)
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		report, err := store.Upkeep().Check(context.Background(), nil)
		if err != nil || !report.OK {
			b.Fatalf("got %v %v, want no error and OK", report, err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(10_000/took[len(took)/2].Seconds(), "memories/s")
}

const exportedMemories = 100_000

func BenchmarkExport(b *testing.B) {
	store := openBench(b, exportedMemories)
	for _, c := range []struct {
		name    string
		options souvenir.ExportOptions
	}{
		{"vectors", souvenir.ExportOptions{}},
		{"texts", souvenir.ExportOptions{WithoutVectors: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			var size int64
			for b.Loop() {
				start := time.Now()
				summary, err := store.Upkeep().Export(context.Background(), io.Discard, &c.options)
				took = append(took, time.Since(start))
				if err != nil || summary.Counts["memory"] < exportedMemories {
					b.Fatalf("got %v %v, want no error and memory at least %v", summary, err, exportedMemories)
				}
				size = summary.Bytes
			}
			slices.Sort(took)
			median := took[len(took)/2].Seconds()
			b.ReportMetric(float64(size)/1e6/median, "MB/s-median")
			b.ReportMetric(exportedMemories/median, "memories/s")
		})
	}
}

func BenchmarkImport(b *testing.B) {
	var export bytes.Buffer
	if _, err := openBench(b, 10_000).Upkeep().Export(context.Background(), &export, nil); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		store, err := souvenir.Open(context.Background(), filepath.Join(b.TempDir(), "import.db"), nil)
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		report, err := store.Upkeep().Import(context.Background(), bytes.NewReader(export.Bytes()), nil)
		took = append(took, time.Since(start))
		if err != nil || report.Counts["memory"].Added < 10_000 {
			b.Fatalf("got %v %v, want no error and added at least 10_000", report, err)
		}
		store.Close()
	}
	slices.Sort(took)
	b.ReportMetric(10_000/took[len(took)/2].Seconds(), "memories/s")
}

// These benchmarks read what the dashboard's pages show, with 100,000 memories and 100,000 recorded calls:
//
//	go test -run '^$' -bench Dashboard -benchtime 3s .

// fillDashboard stores 100,000 memories and as many calls, and waits until the index is in memory.
func fillDashboard(b *testing.B, store *souvenir.Store, later func()) {
	b.Helper()
	ctx := b.Context()
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
		if _, err := store.Insights().ActivityPage(ctx, souvenir.ActivityQuery{Limit: 1}); err != nil {
			b.Fatal(err)
		}
		later()
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
}

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
	fillDashboard(b, store, func() { clock = clock.Add(14 * time.Hour) })
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
			souvenir.GraphQuery{Limit: 5000, MemoryList: souvenir.MemoryList{Filter: souvenir.Filter{"event_type": "decision"}}})
		return err
	})
	measure("map of 5,000", func() error { _, err := store.Insights().Map(ctx, souvenir.MapQuery{}); return err })
	measure("activity", func() error {
		_, err := store.Insights().ActivityPage(ctx, souvenir.ActivityQuery{})
		return err
	})
	measure("activity, failed", func() error {
		_, err := store.Insights().ActivityPage(ctx, souvenir.ActivityQuery{Outcome: souvenir.OutcomeError})
		return err
	})
}
