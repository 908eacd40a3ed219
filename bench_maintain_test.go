package souvenir_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
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
