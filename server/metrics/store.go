package metrics

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// storeCollector reads a store's numbers when metrics are asked for.
type storeCollector struct {
	every time.Duration
	log   *slog.Logger

	upkeep atomic.Pointer[souvenir.Upkeep] // nil: no store yet

	mu      sync.Mutex // guards the following
	counted time.Time  // when stats were read; zero: never
	stats   souvenir.Stats
}

// described is a metric whose value is taken from a T.
type described[T any] struct {
	name, kind, help string
	value            func(T) float64
}

const (
	readTimeout = 5 * time.Second // for what is read from memory, or with one row
	statsLimit  = 30 * time.Second
)

func newStoreCollector(o Options) *storeCollector {
	return &storeCollector{every: o.StatsEvery, log: o.Logger}
}

// ofStats returns the metrics that are counted in tables.
func ofStats() []described[souvenir.Stats] {
	type s = souvenir.Stats
	return []described[s]{
		{"users", gauge, "Users.", func(s s) float64 { return float64(s.Users) }},
		{"projects", gauge, "Projects.", func(s s) float64 { return float64(s.Projects) }},
		{"memories", gauge, "Memories.", func(s s) float64 { return float64(s.Memories) }},
		{"passages", gauge, "Searched units of memories.", func(s s) float64 { return float64(s.Passages) }},
		{"revisions", gauge, "Past versions of memories.", func(s s) float64 { return float64(s.Revisions) }},
		{"files", gauge, "Uploaded files.", func(s s) float64 { return float64(s.Files) }},
		{"file_bytes", gauge, "Bytes of uploaded files.", func(s s) float64 { return float64(s.FileBytes) }},
		{"objects", gauge, "Chunks of files in object storage.", func(s s) float64 { return float64(s.Objects) }},
		{"gone_objects", gauge, "Chunks in object storage that are still to be deleted.",
			func(s s) float64 { return float64(s.GoneObjects) }},
		{"database_bytes", gauge, "Size of the store's file, or of its tables.",
			func(s s) float64 { return float64(s.DatabaseBytes) }},
		{"database_free_bytes", gauge, "Of these, free for new content.",
			func(s s) float64 { return float64(s.FreeBytes) }},
		{"wal_bytes", gauge, "Size of the write-ahead log beside the file.",
			func(s s) float64 { return float64(s.LogBytes) }},
		{"lost_activity", gauge, "Calls that could not be recorded since the start.",
			func(s s) float64 { return float64(s.LostActivity) }},
		{"embedding_pending", gauge, "Passages that wait for their vector.",
			func(s s) float64 { return float64(s.Embedding.Pending) }},
	}
}

// ofRuntime returns the metrics that are read from memory.
func ofRuntime() []described[souvenir.Runtime] {
	type r = souvenir.Runtime
	return []described[r]{
		{"index_bytes", gauge, "Memory of the search index.", func(r r) float64 { return float64(r.IndexBytes) }},
		{"index_limit_bytes", gauge, "The most memory of the search index; negative: it is switched off.",
			func(r r) float64 { return float64(r.IndexLimit) }},
		{"index_partitions", gauge, "Parts that the search index holds.",
			func(r r) float64 { return float64(r.IndexPartitions) }},
		{"index_stale_memories", gauge, "Memories in the index to be read again.",
			func(r r) float64 { return float64(r.IndexStale) }},
		{"index_evictions_total", counter, "Parts dropped from the index to make room.",
			func(r r) float64 { return float64(r.IndexEvictions) }},
		{"writes_in_progress", gauge, "Writes that run or wait for their turn.",
			func(r r) float64 { return float64(r.Writing) }},
	}
}

// Watch reports the numbers of a store, the one that Open returned, from now on.
func (m *Metrics) Watch(store *souvenir.Store) {
	m.store.upkeep.Store(store.Upkeep())
}

// problems returns what is wrong with the store.
func (c *storeCollector) problems(ctx context.Context) ([]souvenir.Problem, error) {
	upkeep := c.upkeep.Load()
	if upkeep == nil {
		return []souvenir.Problem{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return upkeep.Problems(ctx)
}

// write reads the store and writes its numbers. What cannot be read is left out, and store_up says so.
func (c *storeCollector) write(p *page) {
	upkeep := c.upkeep.Load()
	if upkeep == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	problems, err := upkeep.Problems(ctx)
	up := 1.0
	if err != nil {
		up = 0
		c.log.Warn("metrics: the store cannot be read", "error", err)
	}
	p.one("souvenir_store_up", gauge, "Whether the store can be read.", up)
	p.about("souvenir_problem", gauge, "Whether something is wrong, by kind.")
	for _, kind := range souvenir.ProblemKinds() {
		wrong := 0.0
		for _, problem := range problems {
			if problem.Kind == kind {
				wrong = 1
			}
		}
		p.line("souvenir_problem", labelled([]string{"kind"}, []string{string(kind)}), wrong)
	}
	if now, err := upkeep.Runtime(ctx); err == nil {
		const searches = "souvenir_index_searches_total"
		p.about(searches, counter, "Searches: in memory, after loading segments, or in the database.")
		way := []string{"way"}
		p.line(searches, labelled(way, []string{"database"}), float64(now.SearchesInDatabase))
		p.line(searches, labelled(way, []string{"memory"}), float64(now.SearchesInMemory))
		p.line(searches, labelled(way, []string{"segments"}), float64(now.SearchesWithSegments))
		for _, of := range ofRuntime() {
			p.one("souvenir_"+of.name, of.kind, of.help, of.value(now))
		}
	}
	c.count(upkeep)
	if c.counted.IsZero() {
		return
	}
	p.one("souvenir_stats_timestamp_seconds", gauge, "When the store was last counted.", float64(c.counted.Unix()))
	for _, of := range ofStats() {
		p.one("souvenir_"+of.name, of.kind, of.help, of.value(c.stats))
	}
}

// count counts the store again, if that is due.
func (c *storeCollector) count(upkeep *souvenir.Upkeep) {
	if time.Since(c.counted) < c.every {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), statsLimit)
	defer cancel()
	stats, err := upkeep.Stats(ctx)
	if err != nil {
		c.log.Warn("metrics: the store cannot be counted", "error", err)
		return
	}
	c.stats, c.counted = stats, time.Now()
}
