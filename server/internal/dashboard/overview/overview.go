// Package overview serves the home page, and the page of recorded calls.
package overview

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Options are the dependencies of a Service.
type Options struct {
	Site       *web.Site
	Store      *souvenir.Store                           // the operator's
	NoActivity bool                                      // calls are not recorded
	ToolNames  []string                                  // filter values for recorded calls
	Snippets   func(address, token string) []web.Snippet // how to connect clients; nil: only the address is shown

	// Graph computes graphs, in turn.
	Graph func(context.Context, request.Caller, souvenir.GraphQuery) (souvenir.Graph, error)

	Backups func() Backups // of the server; nil: it makes none
}

// Backups is the state of the backups that the server makes at intervals.
type Backups struct {
	Every  time.Duration
	Made   time.Time // the newest sound one; zero: there is none yet
	Failed bool      // the last one
}

// Service serves the overview. Create one with [New].
type Service struct {
	site       *web.Site
	store      *souvenir.Store
	noActivity bool
	toolNames  []string
	snippets   func(address, token string) []web.Snippet
	graph      func(context.Context, request.Caller, souvenir.GraphQuery) (souvenir.Graph, error)
	backups    func() Backups
}

// New creates a Service.
func New(o Options) *Service {
	return &Service{site: o.Site, store: o.Store, noActivity: o.NoActivity, toolNames: o.ToolNames, snippets: o.Snippets,
		graph: o.Graph, backups: o.Backups}
}

// Routes are the routes of the overview and the recorded calls.
func (s *Service) Routes() []route.Route {
	return []route.Route{
		route.Page("/{$}", route.Person, s.showOverview),
		route.Page("/attention", route.Person, s.showAttention),
		route.Page("/trends", route.Person, s.showTrends),

		route.Page("/activity", route.Person, s.showActivity),
	}
}

// overviewPage is the data of the home page.
type overviewPage struct {
	souvenir.Overview
	Projects, Apps int        // totals, with memories or without
	Callers        int        // programs that have called, without browsers
	Path           *firstPath // nil: the account is past its beginning
	Zone           web.Zone
	Growth         growth
	Choices        []dayChoice
	Lists          []countedList
	Health         health
	Recent         []souvenir.Memory
	NotNow         int       // memories that are valid at another time only: lists do not have them
	Calls          []callRow // the latest
	Recorded       bool      // calls are recorded here
}

// Empty reports whether there are no memories yet.
func (p overviewPage) Empty() bool { return p.Memories == 0 }

// dayChoice is a selectable number of days.
type dayChoice struct {
	Days   int
	Chosen bool
}

// overviewDays are the selectable numbers of days, and defaultDays is the default.
var overviewDays = []int{7, 30, 90, 365}

const (
	defaultDays = 30
	recentShown = 5 // memories, and calls
)

// showOverview shows the overview. While vectors are computed, a script polls that part alone.
func (s *Service) showOverview(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	if web.FromScript(r) {
		switch r.Header.Get("HX-Target") {
		case healthID:
			return s.showHealth(w, r, c)
		case pathID:
			return s.showPathMark(w, r, c)
		case clientsID:
			return s.showClientCounts(r, c)
		}
	}
	days, err := daysOf(r)
	if err != nil {
		return nil, err
	}
	data := overviewPage{Zone: web.ZoneOf(r), Recorded: !s.noActivity}
	if data.Overview, err = c.Store.Insights().Overview(r.Context(),
		souvenir.OverviewQuery{Days: days, Location: data.Zone.Location, ClientNames: true}); err != nil {
		return nil, err
	}
	grants, err := c.Store.Accounts().Grants(r.Context())
	if err != nil {
		return nil, err
	}
	if err := s.fillOverview(r, c, &data); err != nil {
		return nil, err
	}
	data.Apps = len(grants)
	if err := s.fillPath(w, r, c, &data, grants); err != nil {
		return nil, err
	}
	for _, one := range overviewDays {
		data.Choices = append(data.Choices, dayChoice{one, one == days})
	}
	data.Growth = grown(data.Days, data.Memories)
	data.Lists = countedLists(data.Overview, s.site.Base())
	data.Health = health{Index: data.Index, EmbeddingStatus: data.Embedding}
	return web.Page{Template: "overview", Title: "Overview", Data: data, Part: "overview-body"}, nil
}

// clientsID is the element that a script replaces with the calls by client, when many calls were not counted yet.
const clientsID = "client-counts"

// showClientCounts shows the calls by client, for a script.
func (s *Service) showClientCounts(r *http.Request, c request.Caller) (any, error) {
	counted, err := c.Store.Insights().Overview(r.Context(), souvenir.OverviewQuery{Days: 1})
	if err != nil {
		return nil, err
	}
	return web.Page{Template: "overview", Title: "Overview", Part: "counted-part",
		Data: clientList(counted.Clients, s.site.Base())}, nil
}

// daysOf returns the number of days that a request selects.
func daysOf(r *http.Request) (int, error) {
	given := r.URL.Query().Get("days")
	if given == "" {
		return defaultDays, nil
	}
	days, err := strconv.Atoi(given)
	if err != nil || !slices.Contains(overviewDays, days) {
		return 0, failure.Invalid("days", "days is "+failure.Quote(given)+"; expected 7, 30, 90 or 365")
	}
	return days, nil
}

// fillOverview loads the data that the store's own overview does not include.
func (s *Service) fillOverview(r *http.Request, c request.Caller, data *overviewPage) error {
	projects, err := c.Store.Projects(r.Context())
	if err != nil {
		return err
	}
	data.Projects = len(projects)
	recent, err := c.Store.Search(r.Context(), souvenir.Query{Sort: souvenir.SortUpdatedDesc, Limit: recentShown})
	if err != nil {
		return err
	}
	data.NotNow = max(0, data.Memories-recent.Total)
	for _, hit := range recent.Hits {
		hit.Content = plain(hit.Content, 300)
		data.Recent = append(data.Recent, hit.Memory)
	}
	calls, err := c.Store.Insights().ActivityPage(r.Context(), souvenir.ActivityQuery{Limit: recentShown})
	if err != nil {
		return err
	}
	about, err := subjectsOf(r.Context(), c, calls.Activities, projects)
	if err != nil {
		return err
	}
	data.Calls = callRows(calls.Activities, c, about)
	for _, client := range data.Clients {
		if !web.IsBrowser(client.Name) {
			data.Callers++
		}
	}
	return nil
}

// plain returns the beginning of a text in one line, without the marks of its Markdown.
func plain(text string, most int) string {
	opening, _ := textview.Opening(text, 4*most)
	return textview.Clip(web.Plain(opening), most)
}

// countedList is a list of names with counts, the largest first.
type countedList struct {
	ID, Title string
	Noun      string // of the counted items
	Note      string // shown for an empty list
	Base      string
	Rows      []countedRow
	Others    int // rows left out
	Rest      int // their total
	More      string
	Late      bool // it is still to be counted: a script requests it
}

// countedRow is a row of such a list.
type countedRow struct {
	Name  string
	Path  string // the list of the counted items; empty: none
	Count int
	Part  float64 // of the largest, in percent
}

const countedShown = 8 // visible rows

func countedLists(o souvenir.Overview, base string) []countedList {
	projects := countedList{ID: "by-project", Title: "By project", Noun: "memory", More: "/projects", Base: base}
	for _, one := range o.Projects {
		if one.ID == "" {
			projects.add("No project", "/memories?"+url.Values{"project": {web.NotSet}}.Encode(), one.Memories)
			continue
		}
		projects.add(one.Name, "/memories?"+url.Values{"project": {one.Owner + "/" + one.ID}}.Encode(), one.Memories)
	}
	collections := countedList{ID: "by-collection", Title: "By collection", Noun: "memory", More: "/collections",
		Base: base}
	for _, one := range o.Collections {
		collections.add(one.Name, "/memories?"+url.Values{"collection": {one.Name}}.Encode(), one.Memories)
	}
	types := countedList{ID: "by-type", Title: "By type", Noun: "memory", More: "/memories", Base: base}
	for _, one := range o.EventTypes {
		if one.Name == "" {
			types.add("No type", "/memories?"+url.Values{"event_type": {web.NotSet}}.Encode(), one.Memories)
			continue
		}
		types.add(one.Name, "/memories?"+url.Values{"event_type": {one.Name}}.Encode(), one.Memories)
	}
	return []countedList{projects, collections, types, clientList(o.Clients, base)}
}

// clientList lists the calls by client.
func clientList(counts []souvenir.ClientCount, base string) countedList {
	clients := countedList{ID: "by-client", Title: "Calls by client", Noun: "call", More: "/activity",
		Note: "No calls yet.", Base: base}
	if len(counts) > 0 && counts[0].Calls == 0 {
		clients.Late = true
		return clients
	}
	var called []string
	for _, one := range counts {
		called = append(called, one.Name)
	}
	names := web.ClientNames(called)
	for i, one := range counts {
		if one.Name == "" {
			clients.add("Unknown programs", "", one.Calls)
			continue
		}
		clients.add(names[i], "/activity?"+url.Values{"client": {one.Name}}.Encode(), one.Calls)
	}
	return clients
}

// add adds a row; rows must come in descending order.
func (l *countedList) add(name, path string, count int) {
	if len(l.Rows) == countedShown {
		l.Others++
		l.Rest += count
		return
	}
	part := 100.0
	if len(l.Rows) > 0 {
		part = 100 * float64(count) / float64(max(1, l.Rows[0].Count))
	}
	l.Rows = append(l.Rows, countedRow{name, path, count, part})
}
