package overview

import (
	"fmt"
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// trendsPage shows what clients did in a period, beside the period before. It is a page of its own, which the overview
// loads when it is shown: counting many calls takes longer than the rest.
type trendsPage struct {
	Days   int
	Zone   web.Zone
	Trends []trend
	Spans  []trendSpan
	Weekly bool
	Any    bool // there was a call in the period
}

// trend is a number for the period, with a chart of its course.
type trend struct {
	Title  string
	Value  string
	Before string // the number for the period before; empty: not known
	Label  string // of the chart
	Points []trendPoint
}

// trendPoint is a column of a chart.
type trendPoint struct {
	Name  string // of the span, with its value
	Value string
	column
}

// trendSpan is the activity on a day, or in a week.
type trendSpan struct {
	Name string
	souvenir.CallDay
}

// hitRate returns the part of the searches that found something, in percent; -1: nothing was searched.
func hitRate(n souvenir.CallDay) int {
	if n.Searches == 0 {
		return -1
	}
	return (200*n.Found + n.Searches) / (2 * n.Searches)
}

// HitRate is the hit rate in words.
func (s trendSpan) HitRate() string { return rateText(hitRate(s.CallDay)) }

func rateText(rate int) string {
	if rate < 0 {
		return "–"
	}
	return fmt.Sprintf("%d%%", rate)
}

// showTrends shows what clients did.
func (s *Service) showTrends(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	days, err := daysOf(r)
	if err != nil {
		return nil, err
	}
	data := trendsPage{Days: days, Zone: web.ZoneOf(r)}
	asked := 2 * days
	if asked > 366 {
		asked = days
	}
	all, err := c.Store.Insights().CallDays(r.Context(), souvenir.CallDaysQuery{Days: asked, Location: data.Zone.Location})
	if err != nil {
		return nil, err
	}
	before := all[:asked-days]
	data.fill(all[asked-days:], before)
	return web.Page{Template: "trends", Title: "Trends", Data: data, Part: "trends-body"}, nil
}

// fill adds up the days, and draws the charts.
func (p *trendsPage) fill(days, before []souvenir.CallDay) {
	length := 1
	if p.Weekly = len(days) > mostColumns; p.Weekly {
		length = 7
	}
	for end := len(days); end > 0; end -= length { // the last span is complete
		begin := max(0, end-length)
		sum := sumOf(days[begin:end])
		p.Spans = append([]trendSpan{{spanName(days[begin].Day, days[end-1].Day), sum}}, p.Spans...)
	}
	now, was := sumOf(days), sumOf(before)
	p.Any = now.Calls > 0
	for _, one := range []struct {
		title string
		value func(souvenir.CallDay) int
		text  func(int) string
	}{
		{"Calls", func(n souvenir.CallDay) int { return n.Calls }, web.Thousands},
		{"Failed calls", func(n souvenir.CallDay) int { return n.Failed }, web.Thousands},
		{"Searches", func(n souvenir.CallDay) int { return n.Searches }, web.Thousands},
		{"Searches with hits", hitRate, rateText},
		{"Clients on a day", func(n souvenir.CallDay) int { return n.Clients }, web.Thousands},
	} {
		t := trend{Title: one.title, Value: one.text(one.value(now))}
		if len(before) > 0 {
			t.Before = one.text(one.value(was))
		}
		t.draw(p.Spans, one.value, one.text)
		p.Trends = append(p.Trends, t)
	}
}

// sumOf adds up days. Its number of clients is the highest of a day, since the same clients call on several days.
func sumOf(days []souvenir.CallDay) (sum souvenir.CallDay) {
	for _, d := range days {
		sum.Calls, sum.Failed = sum.Calls+d.Calls, sum.Failed+d.Failed
		sum.Searches, sum.Found = sum.Searches+d.Searches, sum.Found+d.Found
		sum.Clients = max(sum.Clients, d.Clients)
	}
	return sum
}

// draw computes the columns.
func (t *trend) draw(spans []trendSpan, value func(souvenir.CallDay) int, text func(int) string) {
	most := 1
	for _, span := range spans {
		most = max(most, value(span.CallDay))
	}
	each := float64(chartWidth) / float64(max(1, len(spans)))
	gap := each / 5
	for i, span := range spans {
		n := value(span.CallDay)
		top := height(max(0, n), most)
		if n > 0 {
			top = min(top, chartHeight-1.5) // keeps small counts visible
		}
		t.Points = append(t.Points, trendPoint{span.Name, text(n), column{fmt.Sprintf("%.1f", float64(i)*each+gap/2),
			fmt.Sprintf("%.1f", top), fmt.Sprintf("%.1f", each-gap), fmt.Sprintf("%.1f", chartHeight-top)}})
	}
	t.Label = t.Title + ": " + t.Value
	if t.Before != "" {
		t.Label += ", before " + t.Before
	}
}
