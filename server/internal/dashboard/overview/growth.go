package overview

import (
	"fmt"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// growth is the growth of the number of memories: the data of the charts and of the table.
type growth struct {
	Days        int
	Weekly      bool // a span is a week, else a day
	Spans       []growthSpan
	Added       int // memories added in that time that still exist
	Most        int // of them in one span
	Total       int // memories now
	First, Last string
	Line        string // the totals, as points of a chart that is chartWidth wide and chartHeight high
	Area        string // and the area below them
	Summary     string // the charts in words
}

// growthSpan is a day or a week.
type growthSpan struct {
	Name   string // 1 Mar, or 1 Mar to 7 Mar
	Added  int
	Total  int // at its end
	Column column
}

// column is a column of a chart.
type column struct{ X, Y, Width, Height string }

const (
	chartWidth, chartHeight = 1000, 100
	mostColumns             = 90 // for more days than that, the spans are weeks
)

// grown computes the growth from the daily counts.
func grown(days []souvenir.DayCount, total int) growth {
	g := growth{Days: len(days), Weekly: len(days) > mostColumns, Total: total}
	length := 1
	if g.Weekly {
		length = 7
	}
	for end := len(days); end > 0; end -= length { // the last span is complete
		begin := max(0, end-length)
		span := growthSpan{Name: spanName(days[begin].Day, days[end-1].Day), Total: total - g.Added}
		for _, one := range days[begin:end] {
			span.Added += one.Memories
		}
		g.Added += span.Added
		g.Most = max(g.Most, span.Added)
		g.Spans = append(g.Spans, span)
	}
	for i, j := 0, len(g.Spans)-1; i < j; i, j = i+1, j-1 {
		g.Spans[i], g.Spans[j] = g.Spans[j], g.Spans[i]
	}
	if len(days) > 0 {
		g.First, g.Last = dayName(days[0].Day), dayName(days[len(days)-1].Day)
	}
	g.draw()
	return g
}

// draw computes the coordinates in the charts.
func (g *growth) draw() {
	if len(g.Spans) == 0 {
		return
	}
	each := float64(chartWidth) / float64(len(g.Spans))
	gap := each / 5
	var line strings.Builder
	fmt.Fprintf(&line, "0,%.1f", height(g.Total-g.Added, g.Total))
	best := g.Spans[0]
	for i := range g.Spans {
		span := &g.Spans[i]
		top := height(span.Added, g.Most)
		if span.Added > 0 {
			top = min(top, chartHeight-1.5) // keeps small counts visible
		}
		span.Column = column{fmt.Sprintf("%.1f", float64(i)*each+gap/2), fmt.Sprintf("%.1f", top),
			fmt.Sprintf("%.1f", each-gap), fmt.Sprintf("%.1f", chartHeight-top)}
		fmt.Fprintf(&line, " %.1f,%.1f", float64(i+1)*each, height(span.Total, g.Total))
		if span.Added > best.Added {
			best = *span
		}
	}
	g.Line = line.String()
	g.Area = fmt.Sprintf("0,%d %s %d,%d", chartHeight, g.Line, chartWidth, chartHeight)
	g.Summary = web.Count(g.Added, "memory") + " stored in " + web.Count(g.Days, "day") + "; " + web.Thousands(g.Total) +
		" in total"
	if best.Added > 0 && len(g.Spans) > 1 {
		g.Summary += "; most on " + best.Name + ": " + web.Thousands(best.Added)
		if g.Weekly {
			g.Summary = strings.Replace(g.Summary, "most on ", "most in the week of ", 1)
		}
	}
}

// height returns a value's distance from the top.
func height(n, most int) float64 {
	return chartHeight - float64(chartHeight)*float64(n)/float64(max(1, most))
}

// spanName names a range of days, from its first to its last.
func spanName(first, last string) string {
	if first == last {
		return dayName(first)
	}
	return dayName(first) + " to " + dayName(last)
}

// dayName formats a day of the form 2026-03-01 for people.
func dayName(day string) string {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return day
	}
	return at.Format("2 Jan 2006")
}
