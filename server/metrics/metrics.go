package metrics

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// Options configure [New]. Nil, and the zero value of each field, mean the default named there.
type Options struct {
	// Version and Revision are those of the program, for souvenir_build_info. Empty means unknown.
	Version, Revision string

	// StatsEvery is the minimum time between two counts of the store, which happen on requests for metrics: counting
	// reads tables. Zero means a minute.
	StatsEvery time.Duration

	// Logger receives failures of counting. Nil means no logging.
	Logger *slog.Logger
}

const defaultStatsEvery = time.Minute

// Metrics collects what a store and its server report. It is safe for concurrent use. Create it with [New].
type Metrics struct {
	registry *prometheus.Registry
	store    *storeCollector

	requests        *prometheus.CounterVec
	requestSeconds  *prometheus.HistogramVec
	sentBytes       prometheus.Counter
	refused         *prometheus.CounterVec
	calls           *prometheus.CounterVec
	callSeconds     *prometheus.HistogramVec
	operations      *prometheus.CounterVec
	operationTime   *prometheus.HistogramVec
	records         *prometheus.CounterVec
	backups         *prometheus.CounterVec
	backupTime      prometheus.Gauge
	backupVerified  prometheus.Gauge
	backupBytes     prometheus.Gauge
	backupDuration  prometheus.Gauge
	backupsKept     prometheus.Gauge
	backupScheduled prometheus.Gauge
}

// seconds are the upper bounds of durations: from searches of a small store to uploads.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// New returns metrics of the process. Those of a store come with [Metrics.Watch].
func New(options *Options) *Metrics {
	var o Options
	if options != nil {
		o = *options
	}
	o.StatsEvery = cmp.Or(max(o.StatsEvery, 0), defaultStatsEvery)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Metrics{registry: prometheus.NewRegistry(), store: newStoreCollector(o)}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "souvenir_" + name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	durations := func(name, help string, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "souvenir_" + name, Help: help, Buckets: seconds},
			labels)
		m.registry.MustRegister(h)
		return h
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "souvenir_" + name, Help: help})
		m.registry.MustRegister(g)
		return g
	}
	m.requests = counters("http_requests_total", "Requests answered, by route and class of status.", "route", "class")
	m.requestSeconds = durations("http_request_duration_seconds", "How long requests took, by route.", "route")
	m.sentBytes = prometheus.NewCounter(prometheus.CounterOpts{Name: "souvenir_http_sent_bytes_total",
		Help: "Bytes of the bodies of answers."})
	m.refused = counters("refused_total", "Requests refused: wrong sign-ins, wrong credentials, rate limits, busy.",
		"reason")
	m.calls = counters("tool_calls_total", "Calls of tools, by outcome.", "tool", "action", "outcome")
	m.callSeconds = durations("tool_call_duration_seconds", "How long calls of tools took.", "tool")
	m.operations = counters("operations_total", "Operations on memories, by method and outcome.", "kind", "method",
		"outcome")
	m.operationTime = durations("operation_duration_seconds", "How long operations on memories took.", "kind")
	m.records = counters("operation_memories_total", "Memories stored, changed, deleted or found.", "kind")
	m.backups = counters("backups_total", "Scheduled backups, by outcome.", "outcome")
	m.backupTime = gauge("backup_last_timestamp_seconds", "When the newest backup was made; 0: none.")
	m.backupVerified = gauge("backup_verified_timestamp_seconds", "When a backup was last restored and checked; 0: never.")
	m.backupBytes = gauge("backup_bytes", "Size of the newest backup.")
	m.backupDuration = gauge("backup_duration_seconds", "How long the last backup and its check took.")
	m.backupsKept = gauge("backups", "Backups in the folder.")
	m.backupScheduled = gauge("backup_every_seconds", "How often backups are scheduled; 0: not.")
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "souvenir_build_info", Help: "The program; always 1.",
		ConstLabels: prometheus.Labels{"version": o.Version, "revision": o.Revision, "go": runtime.Version()}})
	build.Set(1)
	m.registry.MustRegister(build, m.sentBytes, m.store, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, reason := range server.Refusals() { // 0 before the first one, so that an increase is seen
		m.refused.WithLabelValues(string(reason))
	}
	for _, outcome := range []string{"ok", "failed"} {
		m.backups.WithLabelValues(outcome)
	}
	return m
}

// Hooks returns hooks that count and time the operations of a store. Put them first in the list, so that they also see
// operations that other hooks refuse. They change nothing and refuse nothing.
func (m *Metrics) Hooks() souvenir.Hooks {
	return souvenir.Hooks{After: func(_ context.Context, o souvenir.Operation, r souvenir.OperationResult) {
		kind := string(o.Kind)
		m.operations.WithLabelValues(kind, o.Method, string(souvenir.OutcomeOf(r.Err))).Inc()
		m.operationTime.WithLabelValues(kind).Observe(r.Duration.Seconds())
		m.records.WithLabelValues(kind).Add(float64(r.Count))
	}}
}

// Answered counts a request. It is for [server.Options].OnRequest.
func (m *Metrics) Answered(a server.Answered) {
	route := cmp.Or(a.Route, "none")
	m.requests.WithLabelValues(route, class(a.Status)).Inc()
	m.requestSeconds.WithLabelValues(route).Observe(a.Duration.Seconds())
	m.sentBytes.Add(float64(a.Bytes))
	if a.Refusal != "" {
		m.refused.WithLabelValues(string(a.Refusal)).Inc()
	}
}

// class returns the class of a status, such as 2xx.
func class(status int) string {
	if status == 0 {
		return "gone"
	}
	return strconv.Itoa(status/100) + "xx"
}

// Called counts a call of a tool. It is for [server.Options].OnCall.
func (m *Metrics) Called(c server.Called) {
	tool := cmp.Or(c.Tool, "none")
	m.calls.WithLabelValues(tool, strings.TrimSpace(c.Action), string(c.Outcome)).Inc()
	m.callSeconds.WithLabelValues(tool).Observe(c.Duration.Seconds())
}

// Backup is a scheduled backup, for [Metrics.BackedUp].
type Backup struct {
	Err      error         // nil: it was made, restored and checked
	Made     time.Time     // when the newest sound backup was made; zero: there is none
	Bytes    int64         // its size
	Kept     int           // backups in the folder
	Duration time.Duration // of making and checking; 0: none was made, only the folder was read
}

// BackupsEvery sets how often backups are scheduled.
func (m *Metrics) BackupsEvery(every time.Duration) { m.backupScheduled.Set(every.Seconds()) }

// BackedUp notes the outcome of a backup.
func (m *Metrics) BackedUp(b Backup) {
	if !b.Made.IsZero() {
		m.backupTime.Set(float64(b.Made.Unix()))
		m.backupBytes.Set(float64(b.Bytes))
	}
	m.backupsKept.Set(float64(b.Kept))
	switch {
	case b.Err != nil:
		m.backups.WithLabelValues("failed").Inc()
	case b.Duration > 0:
		m.backups.WithLabelValues("ok").Inc()
		m.backupVerified.SetToCurrentTime()
	}
	if b.Duration > 0 {
		m.backupDuration.Set(b.Duration.Seconds())
	}
}
