// Package pictures serves the graph and the map of memories.
package pictures

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/slots"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Service serves the pictures. Create one with [New].
type Service struct {
	site *web.Site
	busy slots.Slots // one per processor: a picture keeps one busy, and more at once would slow down tool calls
	maps arranger

	placings placings // of graphs
	shown    shown
}

// New creates a Service.
func New(site *web.Site, log *slog.Logger) *Service {
	return &Service{site: site, busy: make(slots.Slots, runtime.GOMAXPROCS(0)), maps: arranger{log: log},
		placings: placings{log: log}}
}

// Routes are the pages of the graph and the map, the data for their scripts, and the memory panel.
func (s *Service) Routes() []route.Route {
	return []route.Route{
		route.Page("/graph", route.Person, s.showGraph),
		route.Get("/graph/data", route.Person, s.graphData),
		route.Page("/map", route.Person, s.showMap),
		route.Get("/map/data", route.Person, s.mapData),
		route.Get("/graph/names", route.Person, s.names(s.graphNodes)),
		route.Get("/graph/found", route.Person, s.found(s.graphNodes)),
		route.Get("/map/names", route.Person, s.names(s.mapNodes)),
		route.Get("/map/found", route.Person, s.found(s.mapNodes)),
		route.Page("/graph/memories/{id}", route.Person, s.showNode),
	}
}

// pictureQuery is the query of a picture, as in the address of its page. Texts stay as entered, to be shown again.
type pictureQuery struct {
	Project, Collection, Type, Tag string // empty: all
	Limit, Neighbours, Similar     string // empty: the picture's default
	Colour                         string // what memories are coloured by: project, type or collection
	List                           bool   // as a table, not a diagram
	Tries                          int    // how often the page has asked for the table by itself
}

func readPictureQuery(values url.Values) pictureQuery {
	q := pictureQuery{
		Project: values.Get("project"), Collection: values.Get("collection"), Type: values.Get("event_type"),
		Tag:   values.Get("tag"),
		Limit: values.Get("limit"), Neighbours: values.Get("neighbours"), Similar: values.Get("similar"),
		Colour: values.Get("colour"), List: values.Get("show") == "list",
	}
	if !slices.Contains(pictureColours, q.Colour) {
		q.Colour = pictureColours[0]
	}
	if tries, err := strconv.Atoi(values.Get("tries")); err == nil {
		q.Tries = min(max(tries, 0), mostTries)
	}
	return q
}

// mostTries is how often a page asks for a table that is still being computed, after longer and longer pauses: about
// four minutes in all.
const mostTries = 20

// pictureColours are the properties that memories can be coloured by.
var pictureColours = []string{"project", "type", "collection"}

// values returns the query as address parameters, without empty and default ones.
func (q pictureQuery) values() url.Values {
	values := url.Values{}
	for name, value := range map[string]string{"project": q.Project, "collection": q.Collection, "event_type": q.Type,
		"tag":   q.Tag,
		"limit": q.Limit, "neighbours": q.Neighbours, "similar": q.Similar} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if q.Colour != pictureColours[0] {
		values.Set("colour", q.Colour)
	}
	return values
}

// memories names the memories that a picture shows.
func (q pictureQuery) memories() string {
	return url.Values{"project": {q.Project}, "collection": {q.Collection}, "event_type": {q.Type}, "tag": {q.Tag},
		"limit": {q.Limit}}.Encode()
}

// Filtered reports whether a filter is on.
func (q pictureQuery) Filtered() bool { return q.Project+q.Collection+q.Type+q.Tag != "" }

// list returns the store's query for the memories.
func (q pictureQuery) list() souvenir.MemoryList {
	l := souvenir.MemoryList{ProjectID: q.Project}
	if q.Collection != "" {
		l.Collections = []string{q.Collection}
	}
	if q.Tag != "" {
		l.Tags = []string{q.Tag}
	}
	if q.Type != "" {
		l.Filter = souvenir.Filter{"event_type": q.Type}
	}
	return l
}

// pictureNumber parses a whole number; empty is 0.
func pictureNumber(name, text, allowed string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, failure.Invalid(name, name+" is "+failure.Quote(text)+"; "+allowed)
	}
	return n, nil
}

// limit returns how many memories to show; 0: the store's default.
func (q pictureQuery) limit() (int, error) {
	allowed := "expected a number from 1 to " + web.Thousands(souvenir.MaxNodes)
	n, err := pictureNumber("limit", q.Limit, allowed)
	if err == nil && n == 0 && q.Limit != "" {
		err = failure.Invalid("limit", "limit is 0; "+allowed)
	}
	return n, err
}

// graph returns the query of a graph. In the store's query 0 means the default; here it means zero.
func (q pictureQuery) graph() (souvenir.GraphQuery, error) {
	g := souvenir.GraphQuery{MemoryList: q.list()}
	var err error
	if g.Limit, err = q.limit(); err != nil {
		return g, err
	}
	if g.Neighbours, err = pictureNumber("neighbours", q.Neighbours, "expected a number from 0 to 10"); err != nil {
		return g, err
	}
	switch {
	case g.Neighbours < 0:
		return g, failure.Invalid("neighbours", "neighbours is "+strconv.Itoa(g.Neighbours)+
			"; expected a number from 0 to 10")
	case q.Neighbours != "" && g.Neighbours == 0:
		g.Neighbours = -1
	}
	if q.Similar != "" {
		g.Similar, err = strconv.ParseFloat(q.Similar, 64)
		if err != nil {
			return g, failure.Invalid("similar", "similar is "+failure.Quote(q.Similar)+
				"; expected a number from 0 to 1, such as 0.6")
		}
		g.Similar = cmp.Or(g.Similar, 1e-9)
	}
	return g, nil
}

// picturePage is the data of the pages of the graph and the map.
type picturePage struct {
	Kind        string // graph or map
	Query       pictureQuery
	TableURL    string // address of the table view
	DiagramURL  string // address of the diagram view
	Projects    []web.Option
	Collections []web.Option
	Limits      []web.Option
	Neighbours  []web.Option
	Similar     []web.Option
	Colours     []web.Option
	Empty       bool // there are no memories
	Problem     string
	Table       any    // table of the graph or the map; nil: the diagram
	Late        string // address from which a script requests the table; empty: it is here

	AskURL   string // where the page asks for a table that is still being computed; empty: it does not
	AskAfter int    // seconds
}

// ReadGraph computes a graph, in turn.
func (s *Service) ReadGraph(ctx context.Context, c request.Caller, q souvenir.GraphQuery) (g souvenir.Graph,
	err error) {
	err = s.busy.Do(ctx, func() error {
		g, err = c.Store.Insights().Graph(ctx, q)
		return err
	})
	return g, err
}

// showPicture shows the page of a picture. The diagram fetches its data by script; the table is complete.
func (s *Service) showPicture(r *http.Request, c request.Caller, kind, title string,
	table func(pictureQuery) (any, error)) (any, error) {
	q := readPictureQuery(r.URL.Query())
	data, err := s.picture(r.Context(), c, kind, q)
	if err != nil {
		return nil, err
	}
	answer := web.Page{Template: kind, Title: title}
	if q.List {
		answer.Part = "picture-table" // for a page that asks again
	}
	if kind == "graph" && q.List && !data.Empty {
		answer.Part = "picture-found"
		if _, wrong := q.graph(); wrong == nil {
			if data.Late, err = s.site.Late(r, c); err != nil {
				return nil, err
			}
		}
	}
	if q.List && !data.Empty && data.Late == "" {
		data.Table, err = table(q)
		if err := data.refuse(err); err != nil {
			return nil, err
		}
		if data.Problem != "" {
			answer.Status = http.StatusBadRequest
		}
	}
	if t, isMap := data.Table.(*mapTable); isMap && t.Arranging && t.Shown == 0 && q.Tries < mostTries {
		data.AskURL, data.AskAfter = fmt.Sprint(data.TableURL, "&tries=", q.Tries+1), q.Tries+2
	}
	answer.Data = data
	return answer, nil
}

// refuse adds an error in the filters to the page; it returns other errors.
func (p *picturePage) refuse(err error) error {
	var known *souvenir.Error
	if errors.As(err, &known) && known.Kind == souvenir.KindInvalid {
		p.Problem, p.Table = web.Sentence(fault.Text(known)), nil
		return nil
	}
	return err
}

// picture loads the data of a picture's page.
func (s *Service) picture(ctx context.Context, c request.Caller, kind string, q pictureQuery) (picturePage, error) {
	data := picturePage{Kind: kind, Query: q}
	query := q.values()
	data.DiagramURL = s.site.Path("/" + kind + "?" + query.Encode())
	query.Set("show", "list")
	data.TableURL = s.site.Path("/" + kind + "?" + query.Encode())
	projects, err := c.Store.Projects(ctx)
	if err != nil {
		return data, err
	}
	data.Projects = web.Offered(web.ProjectOptions(projects, c.User.ID, q.Project, "All"))
	collections, err := c.Store.Collections(ctx)
	if err != nil {
		return data, err
	}
	pairs := []string{"", "All"}
	memories := 0
	for i, collection := range collections {
		memories += collection.MemoryCount
		if i == 0 || collections[i-1].Name != collection.Name { // several owners may use the same name
			pairs = append(pairs, collection.Name, collection.Name)
		}
	}
	data.Empty = memories == 0
	data.Collections = web.Offered(web.Choices(q.Collection, pairs...))
	data.Colours = web.Choices(q.Colour, "project", "Project", "type", "Type", "collection", "Collection")
	usual := "1,000"
	if kind == "map" {
		usual = web.Thousands(souvenir.MaxNodes)
	}
	data.Limits = web.Choices(q.Limit, "", usual)
	for _, n := range []int{200, 500, 1000, 2000, souvenir.MaxNodes} {
		if web.Thousands(n) != usual || q.Limit == strconv.Itoa(n) {
			data.Limits = append(data.Limits,
				web.Option{Value: strconv.Itoa(n), Label: web.Thousands(n), Chosen: q.Limit == strconv.Itoa(n)})
		}
	}
	data.Limits = slices.CompactFunc(data.Limits, func(a, b web.Option) bool { return a.Value == b.Value })
	data.Neighbours = web.Choices(q.Neighbours, "", "3 each", "0", "None", "1", "1 each", "2", "2 each", "5", "5 each",
		"10", "10 each")
	data.Similar = web.Choices(q.Similar, "0.3", "30%", "0.4", "40%", "0.5", "50%", "", "60%", "0.7", "70%", "0.8",
		"80%", "0.9", "90%")
	return data, nil
}

func projectLabel(p souvenir.Project, user string) string {
	if p.Owner == user || p.Role == souvenir.MemberOwner && p.OwnerName == "" {
		return cmp.Or(p.Name, p.ID)
	}
	return cmp.Or(p.Name, p.ID) + " of " + cmp.Or(p.OwnerName, p.Owner)
}

// projectLabels maps the projects that the user sees, by owner and id, to their names.
func projectLabels(ctx context.Context, c request.Caller) (map[string]string, error) {
	projects, err := c.Store.Projects(ctx)
	labels := map[string]string{}
	for _, p := range projects {
		labels[p.Owner+"/"+p.ID] = projectLabel(p, c.User.ID)
	}
	return labels, err
}
