package metrics

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// Options configure [New]. Nil, and the zero value of each field, mean the default named there.
type Options struct {
	// Version and Revision are those of the program, for souvenir_build_info. Empty means unknown.
	Version, Revision string

	// StatsEvery is how often the store is counted at most, when it is asked for metrics: counting reads tables. Zero
	// means a minute.
	StatsEvery time.Duration

	// Logger receives failures of counting. Nil means no logging.
	Logger *slog.Logger
}

const defaultStatsEvery = time.Minute

// Metrics collects what a store and its server report. It is safe for concurrent use. Create it with [New].
type Metrics struct {
	build   []string // values of the labels of souvenir_build_info
	started time.Time
	store   *storeCollector
	all     []*metric

	requests, requestSeconds, sentBytes, refused                     *metric
	calls, callSeconds                                               *metric
	operations, operationTime, records                               *metric
	backups, backupTime, backupVerified, backupBytes, backupDuration *metric
	backupsKept, backupScheduled                                     *metric
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
	m := &Metrics{build: []string{runtime.Version(), o.Revision, o.Version}, started: time.Now(),
		store: &storeCollector{every: o.StatsEvery, log: o.Logger}}
	made := func(kind, name, help string, labels ...string) *metric {
		added := &metric{name: "souvenir_" + name, help: help, kind: kind, labels: labels, series: map[string]*series{}}
		if len(labels) == 0 {
			added.set(0)
		}
		m.all = append(m.all, added)
		return added
	}
	m.requests = made(counter, "http_requests_total", "Requests answered, by route and class of status.", "class", "route")
	m.requestSeconds = made(histogram, "http_request_duration_seconds", "How long requests took, by route.", "route")
	m.sentBytes = made(counter, "http_sent_bytes_total", "Bytes of the bodies of answers.")
	m.refused = made(counter, "refused_total", "Requests refused: wrong sign-ins, wrong credentials, rate limits, busy.",
		"reason")
	m.calls = made(counter, "tool_calls_total", "Calls of tools, by outcome.", "action", "outcome", "tool")
	m.callSeconds = made(histogram, "tool_call_duration_seconds", "How long calls of tools took.", "tool")
	m.operations = made(counter, "operations_total", "Operations on memories, by method and outcome.", "kind", "method",
		"outcome")
	m.operationTime = made(histogram, "operation_duration_seconds", "How long operations on memories took.", "kind")
	m.records = made(counter, "operation_memories_total", "Memories stored, changed, deleted or found.", "kind")
	m.backups = made(counter, "backups_total", "Scheduled backups, by outcome.", "outcome")
	m.backupTime = made(gauge, "backup_last_timestamp_seconds", "When the newest backup was made; 0: none.")
	m.backupVerified = made(gauge, "backup_verified_timestamp_seconds",
		"When a backup was last restored and checked; 0: never.")
	m.backupBytes = made(gauge, "backup_bytes", "Size of the newest backup.")
	m.backupDuration = made(gauge, "backup_duration_seconds", "How long the last backup and its check took.")
	m.backupsKept = made(gauge, "backups", "Backups in the folder.")
	m.backupScheduled = made(gauge, "backup_every_seconds", "How often backups are scheduled; 0: not.")
	for _, reason := range server.Refusals() { // 0 before the first one, so that an increase is seen
		m.refused.add(0, string(reason))
	}
	for _, outcome := range []string{"ok", "failed"} {
		m.backups.add(0, outcome)
	}
	return m
}

// Hooks returns hooks that count and time the operations of a store. Put them first in the list, so that they see what
// others refuse. They change and refuse nothing.
func (m *Metrics) Hooks() souvenir.Hooks {
	return souvenir.Hooks{After: func(_ context.Context, o souvenir.Operation, r souvenir.OperationResult) {
		kind := string(o.Kind)
		m.operations.add(1, kind, o.Method, string(souvenir.OutcomeOf(r.Err)))
		m.operationTime.observe(r.Duration.Seconds(), kind)
		m.records.add(float64(r.Count), kind)
	}}
}

// Answered counts a request. It is for [server.Options].OnRequest.
func (m *Metrics) Answered(a server.Answered) {
	route := cmp.Or(a.Route, "none")
	m.requests.add(1, class(a.Status), route)
	m.requestSeconds.observe(a.Duration.Seconds(), route)
	m.sentBytes.add(float64(a.Bytes))
	if a.Refusal != "" {
		m.refused.add(1, string(a.Refusal))
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
	m.calls.add(1, strings.TrimSpace(c.Action), string(c.Outcome), tool)
	m.callSeconds.observe(c.Duration.Seconds(), tool)
}

// Backup is a scheduled backup, for [Metrics.BackedUp].
type Backup struct {
	Err      error         // nil: it was made, restored and checked
	Made     time.Time     // when the newest sound backup was made; zero: there is none
	Bytes    int64         // its size
	Kept     int           // backups in the folder
	Duration time.Duration // of making and checking; 0: none was made, the folder was only looked at
}

// BackupsEvery tells how often backups are scheduled.
func (m *Metrics) BackupsEvery(every time.Duration) { m.backupScheduled.set(every.Seconds()) }

// BackedUp notes the outcome of a backup.
func (m *Metrics) BackedUp(b Backup) {
	if !b.Made.IsZero() {
		m.backupTime.set(float64(b.Made.Unix()))
		m.backupBytes.set(float64(b.Bytes))
	}
	m.backupsKept.set(float64(b.Kept))
	switch {
	case b.Err != nil:
		m.backups.add(1, "failed")
	case b.Duration > 0:
		m.backups.add(1, "ok")
		m.backupVerified.set(float64(time.Now().Unix()))
	}
	if b.Duration > 0 {
		m.backupDuration.set(b.Duration.Seconds())
	}
}
