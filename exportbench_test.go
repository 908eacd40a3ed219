package souvenir_test

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

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
