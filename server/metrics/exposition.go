package metrics

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The kinds of metrics.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
	summary   = "summary"
)

// metric is a metric that events change. It has a series for each combination of its labels' values that was seen.
type metric struct {
	name, help, kind string
	labels           []string // in order of the alphabet

	mu     sync.Mutex // guards the following
	series map[string]*series
}

// series is one line of a metric, or the lines of one histogram.
type series struct {
	value  float64  // the sum of what a histogram observed
	counts []uint64 // of a histogram: what was observed in each of seconds, and above all of them
}

// at returns the series with such values of the labels. The caller holds mu.
func (m *metric) at(values []string) *series {
	of := labelled(m.labels, values)
	s := m.series[of]
	if s == nil {
		s = &series{}
		if m.kind == histogram {
			s.counts = make([]uint64, len(seconds)+1)
		}
		m.series[of] = s
	}
	return s
}

func (m *metric) add(by float64, values ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at(values).value += by
}

func (m *metric) set(to float64, values ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at(values).value = to
}

// observe adds a duration in seconds to a histogram.
func (m *metric) observe(took float64, values ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.at(values)
	s.value += took
	bucket, _ := slices.BinarySearch(seconds, took) // a bound is the largest value of its bucket
	s.counts[bucket]++
}

// page is written in the text format that Prometheus reads.
type page struct {
	bytes.Buffer

	names []string // of the metrics
}

// metric writes a metric that events have changed.
func (p *page) metric(m *metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.about(m.name, m.kind, m.help)
	all := make([]string, 0, len(m.series))
	for of := range m.series {
		all = append(all, of)
	}
	slices.Sort(all)
	for _, of := range all {
		s := m.series[of]
		if m.kind != histogram {
			p.line(m.name, of, s.value)
			continue
		}
		up := uint64(0)
		for i, count := range s.counts {
			up += count
			bound := "+Inf"
			if i < len(seconds) {
				bound = text(seconds[i])
			}
			within := labelled([]string{"le"}, []string{bound})
			if of != "" {
				within = strings.TrimSuffix(of, "}") + "," + within[1:]
			}
			p.line(m.name+"_bucket", within, float64(up))
		}
		p.line(m.name+"_sum", of, s.value)
		p.line(m.name+"_count", of, float64(up))
	}
}

// one writes a metric of one series.
func (p *page) one(name, kind, help string, value float64) {
	p.about(name, kind, help)
	p.line(name, "", value)
}

// about writes what comes before the series of a metric.
func (p *page) about(name, kind, help string) {
	p.names = append(p.names, name)
	help = strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(help)
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// line writes a series; its labels come from labelled.
func (p *page) line(name, labels string, value float64) {
	p.WriteString(name + labels + " " + text(value) + "\n")
}

func text(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }

var inLabels = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// labelled returns labels and their values as they follow a name: {a="b",c="d"}, or nothing if there are none.
func labelled(labels, values []string) string {
	if len(labels) == 0 {
		return ""
	}
	var b strings.Builder
	for i, label := range labels {
		b.WriteString(",")
		b.WriteString(label)
		b.WriteString(`="`)
		b.WriteString(inLabels.Replace(strings.ToValidUTF8(values[i], "\uFFFD")))
		b.WriteString(`"`)
	}
	return "{" + b.String()[1:] + "}"
}
