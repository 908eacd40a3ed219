// Package pictures is the graph and the map of memories.
package pictures

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// Service draws pictures. Make one with [New].
type Service struct {
	site *web.Site
	busy chan struct{} // holds one for each picture that is computed now
}

// New makes the room.
func New(site *web.Site) *Service {
	return &Service{site: site, busy: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Routes are the graph and the map of memories: the pages, what scripts draw from, and a memory beside the picture.
func (s *Service) Routes() []route.Route {
	return []route.Route{
		route.Get("/graph", route.Person, s.showGraph),
		route.Get("/graph/data", route.Person, s.graphData),
		route.Get("/map", route.Person, s.showMap),
		route.Get("/map/data", route.Person, s.mapData),
		route.Get("/graph/found", route.Person, s.foundInPicture),
		route.Get("/graph/memories/{id}", route.Person, s.showNode),
	}
}

// pictureQuery is what a picture shows, as the address of its page says it. Texts stay as they were typed, to be shown
// again.
type pictureQuery struct {
	Project, Collection, Type, Tag string // empty: all
	Limit, Neighbours, Similar     string // empty: as the picture has it
	Colour                         string // by which of project, type and collection memories are coloured
	List                           bool   // in words, and not drawn
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
	return q
}

// pictureColours are what memories can be coloured by.
var pictureColours = []string{"project", "type", "collection"}

// values is the query as parameters of an address, without what is empty or as it is anyway.
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

// Filtered reports whether not all memories are asked for.
func (q pictureQuery) Filtered() bool { return q.Project+q.Collection+q.Type+q.Tag != "" }

// list says to the store which memories are meant.
func (q pictureQuery) list() souvenir.List {
	l := souvenir.List{ProjectID: q.Project}
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

// pictureNumber reads a whole number; empty is 0.
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

// limit is how many memories shall be shown; 0: as many as the store thinks.
func (q pictureQuery) limit() (int, error) {
	allowed := "a number from 1 to " + web.Thousands(souvenir.MaxNodes) + " is expected"
	n, err := pictureNumber("limit", q.Limit, allowed)
	if err == nil && n == 0 && q.Limit != "" {
		err = failure.Invalid("limit", "limit is 0; "+allowed)
	}
	return n, err
}

// graph is the query of a graph. In the store's, 0 means what is usual; here it is meant.
func (q pictureQuery) graph() (souvenir.GraphQuery, error) {
	g := souvenir.GraphQuery{List: q.list()}
	var err error
	if g.Limit, err = q.limit(); err != nil {
		return g, err
	}
	if g.Neighbours, err = pictureNumber("neighbours", q.Neighbours, "a number from 0 to 10 is expected"); err != nil {
		return g, err
	}
	switch {
	case g.Neighbours < 0:
		return g, failure.Invalid("neighbours", "neighbours is "+strconv.Itoa(g.Neighbours)+
			"; a number from 0 to 10 is expected")
	case q.Neighbours != "" && g.Neighbours == 0:
		g.Neighbours = -1
	}
	if q.Similar != "" {
		g.Similar, err = strconv.ParseFloat(q.Similar, 64)
		if err != nil {
			return g, failure.Invalid("similar", "similar is "+failure.Quote(q.Similar)+
				"; a number from 0 to 1 is expected, such as 0.6")
		}
		g.Similar = cmp.Or(g.Similar, 1e-9)
	}
	return g, nil
}

// picturePage is what the pages of a graph and of a map show.
type picturePage struct {
	Kind        string // graph or map
	Query       pictureQuery
	Words       string // address of the page that tells the picture in words
	Drawing     string // address of the page that draws it
	Projects    []web.Option
	Collections []web.Option
	Limits      []web.Option
	Neighbours  []web.Option
	Similar     []web.Option
	Colours     []web.Option
	Empty       bool // there are no memories at all
	Problem     string
	InWords     any // of the graph or of the map; nil: it is drawn
}

// inTurn does what keeps a processor busy for a while. As many are at it at once as there are processors; the others
// wait, so that calls of tools are not slowed down.
func (s *Service) inTurn(ctx context.Context, do func() error) error {
	select {
	case s.busy <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.busy }()
	return do()
}

// ReadGraph computes a graph in turn.
func (s *Service) ReadGraph(ctx context.Context, c request.Caller, q souvenir.GraphQuery) (g souvenir.Graph,
	err error) {
	err = s.inTurn(ctx, func() error {
		g, err = c.Store.Insights().Graph(ctx, q)
		return err
	})
	return g, err
}

// showPicture shows the page of a picture. Drawn, it fetches the data by itself; in words, it has all there is.
func (s *Service) showPicture(r *http.Request, c request.Caller, kind, title string,
	words func(pictureQuery) (any, error)) (any, error) {
	q := readPictureQuery(r.URL.Query())
	data, err := s.picture(r.Context(), c, kind, q)
	if err != nil {
		return nil, err
	}
	answer := web.Page{Template: kind, Title: title}
	if q.List && !data.Empty {
		data.InWords, err = words(q)
		if err := data.refuse(err); err != nil {
			return nil, err
		}
		if data.Problem != "" {
			answer.Status = http.StatusBadRequest
		}
	}
	answer.Data = data
	return answer, nil
}

// refuse takes up an error that whoever chose the filters can mend; others it returns.
func (p *picturePage) refuse(err error) error {
	var known *souvenir.Error
	if errors.As(err, &known) && known.Kind == souvenir.KindInvalid {
		p.Problem, p.InWords = web.Sentence(known.Error()), nil
		return nil
	}
	return err
}

// picture gathers what the page of a picture offers.
func (s *Service) picture(ctx context.Context, c request.Caller, kind string, q pictureQuery) (picturePage, error) {
	data := picturePage{Kind: kind, Query: q}
	query := q.values()
	data.Drawing = s.site.Path("/" + kind + "?" + query.Encode())
	query.Set("show", "list")
	data.Words = s.site.Path("/" + kind + "?" + query.Encode())
	projects, err := c.Store.Projects(ctx)
	if err != nil {
		return data, err
	}
	pairs := []string{"", "All"}
	for _, p := range projects {
		pairs = append(pairs, p.Ref(), projectLabel(p, c.User.ID))
	}
	data.Projects = web.Choices(q.Project, pairs...)
	collections, err := c.Store.Collections(ctx)
	if err != nil {
		return data, err
	}
	pairs = []string{"", "All"}
	memories := 0
	for i, collection := range collections {
		memories += collection.MemoryCount
		if i == 0 || collections[i-1].Name != collection.Name { // others may have one of the same name
			pairs = append(pairs, collection.Name, collection.Name)
		}
	}
	data.Empty = memories == 0
	data.Collections = web.Choices(q.Collection, pairs...)
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
	data.Similar = web.Choices(q.Similar, "0.3", "30 %", "0.4", "40 %", "0.5", "50 %", "", "60 %", "0.7", "70 %", "0.8",
		"80 %", "0.9", "90 %")
	return data, nil
}

func projectLabel(p souvenir.Project, user string) string {
	if p.Owner == user || p.Role == souvenir.MemberOwner && p.OwnerName == "" {
		return cmp.Or(p.Name, p.ID)
	}
	return cmp.Or(p.Name, p.ID) + " of " + cmp.Or(p.OwnerName, p.Owner)
}

// projectLabels are the names of the projects that somebody sees, by owner and id.
func projectLabels(ctx context.Context, c request.Caller) (map[string]string, error) {
	projects, err := c.Store.Projects(ctx)
	labels := map[string]string{}
	for _, p := range projects {
		labels[p.Owner+"/"+p.ID] = projectLabel(p, c.User.ID)
	}
	return labels, err
}

// foundInPicture tells which memories are about a text, so that a picture can show where they lie.
func (s *Service) foundInPicture(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	q := readPictureQuery(r.URL.Query())
	l := q.list()
	found := []string{}
	text := r.URL.Query().Get("q")
	if text == "" {
		return map[string]any{"ids": found}, nil
	}
	results, err := c.Store.Search(r.Context(),
		souvenir.Query{Text: text, Collections: l.Collections, ProjectID: l.ProjectID, Tags: l.Tags, Filter: l.Filter,
			Limit: souvenir.MaxLimit})
	if err != nil {
		return nil, err
	}
	for _, hit := range results.Hits {
		if hit.Score >= results.Hits[0].Score/2 { // the others are only what comes next
			found = append(found, hit.ID)
		}
	}
	return map[string]any{"ids": found}, nil
}
