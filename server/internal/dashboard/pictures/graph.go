package pictures

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/layout"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// graphTable is the table view of a graph: the memories with the most connections.
type graphTable struct {
	Rows           []connectedMemory
	Shown, Total   int
	Links, Similar int // edges
	Alone          int // memories without edges
	Clusters       []clusterRow
	Others         int  // clusters that are not listed
	Arranging      bool // similarities of the latest changes are not known yet
	Warnings       []string
}

// connectedMemory is a row of it.
type connectedMemory struct {
	souvenir.Node
	Project        string
	Links, Similar int
}

// showGraph shows the page of the graph.
func (s *Service) showGraph(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.showPicture(r, c, "graph", "Graph",
		func(q pictureQuery) (any, error) { return s.readGraphTable(r.Context(), c, q) })
}

// readGraphTable counts the connections of the memories in the graph.
func (s *Service) readGraphTable(ctx context.Context, c request.Caller, q pictureQuery) (*graphTable, error) {
	const rows = 50
	key, query, read, err := s.graphQuery(c, q)
	if err != nil {
		return nil, err
	}
	g, err := s.ReadGraph(ctx, c, query)
	if err != nil {
		return nil, err
	}
	if g.Stale {
		s.placings.renew(key, g, read)
	}
	projects, err := projectLabels(ctx, c)
	if err != nil {
		return nil, err
	}
	table := &graphTable{Shown: len(g.Nodes), Total: g.Total, Arranging: g.Stale, Warnings: g.Warnings}
	for _, node := range g.Nodes {
		table.Rows = append(table.Rows, connectedMemory{Node: node, Project: projectOfNode(node, projects)})
	}
	for _, edge := range g.Edges {
		a, b := &table.Rows[edge.From], &table.Rows[edge.To]
		if edge.Kind == souvenir.EdgeSimilar {
			table.Similar++
			a.Similar++
			b.Similar++
		} else {
			table.Links++
			a.Links++
			b.Links++
		}
	}
	for _, row := range table.Rows {
		if row.Links+row.Similar == 0 {
			table.Alone++
		}
	}
	table.Clusters, table.Others = clusterRows(g.Clusters, func(i int) souvenir.Node { return g.Nodes[i] })
	slices.SortStableFunc(table.Rows, func(a, b connectedMemory) int { return b.Links + b.Similar - a.Links - a.Similar })
	table.Rows = table.Rows[:min(rows, len(table.Rows))]
	for i := range table.Rows {
		table.Rows[i].Label = plain(table.Rows[i].Label)
	}
	return table, nil
}

// graphQuery returns the query of a graph, which may be stale, the key of its placing, and how to read it anew.
func (s *Service) graphQuery(c request.Caller, q pictureQuery) (mapKey, souvenir.GraphQuery, reading, error) {
	query, err := q.graph()
	read := func(ctx context.Context) (souvenir.Graph, error) { return c.Store.Insights().Graph(ctx, query) }
	stale := query
	stale.Stale = true
	return mapKey{c.User.ID, strings.Join([]string{q.memories(), q.Neighbours, q.Similar}, " ")}, stale, read, err
}

// graphData returns the graph with a position for each memory.
func (s *Service) graphData(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	key, query, read, err := s.graphQuery(c, readPictureQuery(r.URL.Query()))
	if err != nil {
		return nil, err
	}
	g, err := s.ReadGraph(r.Context(), c, query)
	if err != nil {
		return nil, err
	}
	var at placing
	err = s.busy.Do(r.Context(), func() error {
		g, at, err = s.placings.of(r.Context(), key, g, read)
		return err
	})
	if err != nil {
		return nil, err
	}
	projects, err := projectLabels(r.Context(), c)
	if err != nil {
		return nil, err
	}
	d := draw(g.Nodes, at.places, projects)
	d.addEdges(g.Edges)
	d.addClusters(g.Clusters)
	d.Folded = append(d.Folded, at.folded...)
	d.Total, d.Arranging, d.Warnings = g.Total, g.Stale, append(d.Warnings, g.Warnings...)
	return nil, s.answer(w, r, c.User.ID, g.Nodes, d)
}

// pulls returns which memories have edges, and how strongly pairs of these pull each other: with an edge, and
// weakly two that are nearly similar enough for one, which keeps their clusters together.
func pulls(g souvenir.Graph) (linked []bool, edges []layout.Edge) {
	const weak = 0.03
	linked = make([]bool, len(g.Nodes))
	for _, edge := range g.Edges {
		linked[edge.From], linked[edge.To] = true, true
		weight := float32(1)
		if edge.Kind == souvenir.EdgeSimilar {
			weight = float32(max(edge.Score, 0.1))
		}
		edges = append(edges, layout.Edge{A: edge.From, B: edge.To, Weight: weight})
	}
	for _, edge := range g.Nearest {
		if linked[edge.From] && linked[edge.To] {
			edges = append(edges, layout.Edge{A: edge.From, B: edge.To, Weight: weak})
		}
	}
	return linked, edges
}

// graphPlaces returns a place for each memory that has edges; memories without edges are folded.
func graphPlaces(ctx context.Context, g souvenir.Graph) (places []float32, folded []int, err error) {
	linked, edges := pulls(g)
	number, drawn := make([]int, len(g.Nodes)), 0
	for i := range g.Nodes {
		if number[i] = drawn; linked[i] {
			drawn++
		} else {
			folded = append(folded, i)
		}
	}
	for i, edge := range edges {
		edges[i].A, edges[i].B = number[edge.A], number[edge.B]
	}
	own, err := layout.Places(ctx, drawn, edges)
	if err != nil {
		return nil, nil, err
	}
	places = make([]float32, 2*len(g.Nodes))
	for i := range g.Nodes {
		if linked[i] {
			places[2*i], places[2*i+1] = own[2*number[i]], own[2*number[i]+1]
		}
	}
	return places, folded, nil
}

// nodePage is the data of the memory panel beside a picture.
type nodePage struct {
	souvenir.Memory
	Begins string // its content, possibly cut
	Cut    bool
}

// showNode shows a memory beside a picture; without JavaScript, on a page of its own.
func (s *Service) showNode(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	const most = 700 // characters
	m, err := c.Store.GetMemory(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	data := nodePage{Memory: m, Begins: shorten.After(m.Content, most)}
	data.Cut = len(data.Begins) != len(m.Content)
	return web.Page{Template: "graphmemory", Title: "Memory", Data: data, Part: "node"}, nil
}
