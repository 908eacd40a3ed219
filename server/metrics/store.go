package metrics

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/souvenir-ai/souvenir"
)

// storeCollector reads a store's numbers when metrics are requested.
type storeCollector struct {
	every time.Duration
	log   *slog.Logger

	upkeep atomic.Pointer[souvenir.Upkeep] // nil: no store yet

	mu      sync.Mutex // guards the following
	counted time.Time  // when stats were read; zero: never
	stats   souvenir.Stats

	down, problem, statsAt *prometheus.Desc
	ofStats                []described[souvenir.Stats]
	ofRuntime              []described[souvenir.Runtime]
}

// described is a metric whose value is taken from a T.
type described[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(T) float64
	label []string // its value
}

const (
	readTimeout = 5 * time.Second // for reads from memory, or of one row
	statsLimit  = 30 * time.Second
)

func newStoreCollector(o Options) *storeCollector {
	c := &storeCollector{every: o.StatsEvery, log: o.Logger}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("souvenir_"+name, help, labels, nil)
	}
	c.down = desc("store_up", "Whether the store can be read.")
	c.problem = desc("problem", "Whether something is wrong, by kind.", "kind")
	c.statsAt = desc("stats_timestamp_seconds", "When the store was last counted.")
	stat := func(name, help string, value func(souvenir.Stats) float64) {
		c.ofStats = append(c.ofStats, described[souvenir.Stats]{desc(name, help), prometheus.GaugeValue, value, nil})
	}
	stat("users", "Users.", func(s souvenir.Stats) float64 { return float64(s.Users) })
	stat("projects", "Projects.", func(s souvenir.Stats) float64 { return float64(s.Projects) })
	stat("memories", "Memories.", func(s souvenir.Stats) float64 { return float64(s.Memories) })
	stat("passages", "Searched units of memories.", func(s souvenir.Stats) float64 { return float64(s.Passages) })
	stat("revisions", "Past versions of memories.", func(s souvenir.Stats) float64 { return float64(s.Revisions) })
	stat("files", "Uploaded files.", func(s souvenir.Stats) float64 { return float64(s.Files) })
	stat("file_bytes", "Bytes of uploaded files.", func(s souvenir.Stats) float64 { return float64(s.FileBytes) })
	stat("objects", "Chunks of files in object storage.", func(s souvenir.Stats) float64 { return float64(s.Objects) })
	stat("gone_objects", "Chunks in object storage that are still to be deleted.",
		func(s souvenir.Stats) float64 { return float64(s.GoneObjects) })
	stat("database_bytes", "Size of the store's file, or of its tables.",
		func(s souvenir.Stats) float64 { return float64(s.DatabaseBytes) })
	stat("database_free_bytes", "Of these, free for new content.",
		func(s souvenir.Stats) float64 { return float64(s.FreeBytes) })
	stat("wal_bytes", "Size of the write-ahead log beside the file.",
		func(s souvenir.Stats) float64 { return float64(s.LogBytes) })
	stat("lost_activity", "Calls that could not be recorded since the start.",
		func(s souvenir.Stats) float64 { return float64(s.LostActivity) })
	stat("embedding_pending", "Passages that wait for their vector.",
		func(s souvenir.Stats) float64 { return float64(s.Embedding.Pending) })
	c.ofRuntime = runtimeMetrics(desc)
	return c
}

func runtimeMetrics(desc func(name, help string, labels ...string) *prometheus.Desc) []described[souvenir.Runtime] {
	type of = described[souvenir.Runtime]
	searches := desc("index_searches_total", "Searches: in memory, after loading segments, or in the database.", "way")
	search := func(way string, value func(souvenir.Runtime) float64) of {
		return of{searches, prometheus.CounterValue, value, []string{way}}
	}
	return []of{
		{desc("index_bytes", "Memory of the search index."), prometheus.GaugeValue,
			func(r souvenir.Runtime) float64 { return float64(r.IndexBytes) }, nil},
		{desc("index_limit_bytes", "The most memory of the search index; negative: it is switched off."),
			prometheus.GaugeValue, func(r souvenir.Runtime) float64 { return float64(r.IndexLimit) }, nil},
		{desc("index_partitions", "Parts that the search index holds."), prometheus.GaugeValue,
			func(r souvenir.Runtime) float64 { return float64(r.IndexPartitions) }, nil},
		{desc("index_stale_memories", "Memories in the index to be read again."), prometheus.GaugeValue,
			func(r souvenir.Runtime) float64 { return float64(r.IndexStale) }, nil},
		search("memory", func(r souvenir.Runtime) float64 { return float64(r.SearchesInMemory) }),
		search("segments", func(r souvenir.Runtime) float64 { return float64(r.SearchesWithSegments) }),
		search("database", func(r souvenir.Runtime) float64 { return float64(r.SearchesInDatabase) }),
		{desc("index_evictions_total", "Parts dropped from the index to make room."), prometheus.CounterValue,
			func(r souvenir.Runtime) float64 { return float64(r.IndexEvictions) }, nil},
		{desc("writes_in_progress", "Writes that run or wait for their turn."), prometheus.GaugeValue,
			func(r souvenir.Runtime) float64 { return float64(r.Writing) }, nil},
	}
}

// Watch reports the numbers of a store, the one that Open returned, from now on.
func (m *Metrics) Watch(store *souvenir.Store) {
	m.store.upkeep.Store(store.Upkeep())
}

// problems returns the problems of the store.
func (c *storeCollector) problems(ctx context.Context) ([]souvenir.Problem, error) {
	upkeep := c.upkeep.Load()
	if upkeep == nil {
		return []souvenir.Problem{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return upkeep.Problems(ctx)
}

// Describe sends the descriptions of all metrics.
func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.down
	ch <- c.problem
	ch <- c.statsAt
	for _, one := range c.ofStats {
		ch <- one.desc
	}
	for _, one := range c.ofRuntime {
		ch <- one.desc
	}
}

// Collect reads the store. Numbers that cannot be read are left out; store_up is 0 if the store cannot be read.
func (c *storeCollector) Collect(ch chan<- prometheus.Metric) {
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
	ch <- prometheus.MustNewConstMetric(c.down, prometheus.GaugeValue, up)
	for _, kind := range souvenir.ProblemKinds() {
		wrong := 0.0
		for _, p := range problems {
			if p.Kind == kind {
				wrong = 1
			}
		}
		ch <- prometheus.MustNewConstMetric(c.problem, prometheus.GaugeValue, wrong, string(kind))
	}
	if now, err := upkeep.Runtime(ctx); err == nil {
		for _, one := range c.ofRuntime {
			ch <- prometheus.MustNewConstMetric(one.desc, one.kind, one.value(now), one.label...)
		}
	}
	c.count(upkeep)
	if c.counted.IsZero() {
		return
	}
	ch <- prometheus.MustNewConstMetric(c.statsAt, prometheus.GaugeValue, float64(c.counted.Unix()))
	for _, one := range c.ofStats {
		ch <- prometheus.MustNewConstMetric(one.desc, one.kind, one.value(c.stats))
	}
}

// count counts the store again if a new count is due.
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
