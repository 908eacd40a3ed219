package storetest

import (
	"fmt"
	"math"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func overviews() concept {
	return concept{"Overview", []promise{
		{"an overview counts what there is by everything", overviewCounts},
		{"an overview of nothing is empty lists", overviewEmpty},
		{"days begin where the reader is", overviewDays},
		{"a graph has links, and near duplicates", graphEdges},
		{"a graph shows the memories that fit, the last updated first", graphSelects},
		{"a map puts similar memories close together, each time in the same way", mapPlaces},
		{"a map of neighbours keeps together what is similar, and names it", mapNeighbours},
		{"what has no vector of the store's is not placed", mapUnplaced},
		{"graphs and maps refuse invalid queries", picturesRefuse},
	}}
}

func (f *fixture) overview(q souvenir.OverviewQuery) souvenir.Overview {
	f.Helper()
	o, err := f.reader.Insights().Overview(f.ctx, q)
	f.check("Overview", err)
	return o
}

func (f *fixture) graph(q souvenir.GraphQuery) souvenir.Graph {
	f.Helper()
	g, err := f.reader.Insights().Graph(f.ctx, q)
	f.check("Graph", err)
	return g
}

func (f *fixture) layOut(q souvenir.MapQuery) souvenir.Map {
	f.Helper()
	m, err := f.reader.Insights().Map(f.ctx, q)
	f.check("Map", err)
	return m
}

// labels returns the labels of some nodes.
func labels(nodes []souvenir.Node) []string {
	list := []string{}
	for _, n := range nodes {
		list = append(list, n.Label)
	}
	return list
}

func overviewCounts(f *fixture) {
	f.addCollection(souvenir.NewCollection{Name: "big"})
	ann := f.as(souvenir.Access{User: "ann"})
	for i := range 5 {
		ann.add(souvenir.NewMemory{Content: fmt.Sprint("a car ", i), EventType: []string{"case", "", "note"}[i%3],
			ProjectID: []string{"p", "q"}[i%2], ProjectName: []string{"Apollo", "Quest"}[i%2]})
	}
	ann.addTexts("nowhere")
	f.addTexts("another's")
	_, err := f.operator.AddMember(f.ctx,
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: "ann/q"}, User: souvenir.LocalUser, Role: souvenir.MemberReader})
	f.check("AddMember", err)
	f.record(souvenir.NewActivity{Principal: by("ann"), Client: "cursor", Tool: "memory"},
		souvenir.NewActivity{Client: "codex", Tool: "memory"})
	f.clock.Pass(time.Minute)
	f.record(souvenir.NewActivity{Principal: by("ann"), Client: "claude", Tool: "memory"},
		souvenir.NewActivity{Principal: by("ann"), Client: "claude", Tool: "memory"})
	o := ann.overview(souvenir.OverviewQuery{})
	f.equal("memories", o.Memories, 6)
	f.equal("projects", o.Projects,
		[]souvenir.ProjectCount{{ID: "p", Name: "Apollo", Owner: "ann", Memories: 3},
			{ID: "q", Name: "Quest", Owner: "ann", Memories: 2}, {Memories: 1}})
	f.equal("collections", o.Collections,
		[]souvenir.CollectionCount{{Name: souvenir.DefaultCollection, Owner: "ann", Memories: 6}})
	f.equal("event types", o.EventTypes,
		[]souvenir.EventTypeCount{{Memories: 3}, {Name: "case", Memories: 2}, {Name: "note", Memories: 1}})
	f.equal("clients", o.Clients,
		[]souvenir.ClientCount{{Name: "claude", Calls: 2, LastCall: f.clock.Now()},
			{Name: "cursor", Calls: 1, LastCall: f.clock.Now().Add(-time.Minute)}})
	f.equal("passages", o.Embedding.Passages, 6)
	few := ann.overview(souvenir.OverviewQuery{MemoriesOnly: true})
	o.Files, o.Clients = 0, []souvenir.ClientCount{}
	f.equal("of memories only", few, o)
	f.equal("of the local user", []any{f.overview(souvenir.OverviewQuery{}).Memories,
		len(f.overview(souvenir.OverviewQuery{}).Projects)}, []any{3, 2})
	limited := f.as(souvenir.Access{User: "ann", Projects: []string{"q"}}).overview(souvenir.OverviewQuery{})
	f.equal("of a limited view", []any{limited.Memories, limited.Projects[0].ID, len(limited.Projects), limited.Clients},
		[]any{2, "q", 1, []souvenir.ClientCount{}})
}

func overviewEmpty(f *fixture) {
	o := f.as(souvenir.Access{User: "noah"}).overview(souvenir.OverviewQuery{Days: 1})
	f.equal("overview", o, souvenir.Overview{
		Projects: []souvenir.ProjectCount{}, Collections: []souvenir.CollectionCount{},
		EventTypes: []souvenir.EventTypeCount{}, Clients: []souvenir.ClientCount{},
		Days:      []souvenir.DayCount{{Day: "2026-03-01"}},
		Embedding: souvenir.EmbeddingStatus{Model: "words-1", Dimensions: o.Embedding.Dimensions}, Index: o.Index,
	})
}

func overviewDays(f *fixture) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	f.check("LoadLocation", err)
	f.addTexts("first") // 10:00 in Berlin
	f.clock.Pass(14*time.Hour - time.Microsecond)
	f.addTexts("late") // still that day in Berlin, by a microsecond
	f.clock.Pass(time.Microsecond)
	f.addTexts("next")
	f.clock.Pass(28 * day) // summer time has begun there, on March 29
	f.addTexts("summer")
	counts := func(q souvenir.OverviewQuery) map[string]int {
		found := map[string]int{}
		for _, d := range f.overview(q).Days {
			if d.Memories > 0 {
				found[d.Day] = d.Memories
			}
		}
		return found
	}
	f.equal("in UTC", counts(souvenir.OverviewQuery{}), map[string]int{"2026-03-01": 3, "2026-03-29": 1})
	f.equal("in Berlin", counts(souvenir.OverviewQuery{Location: berlin}),
		map[string]int{"2026-03-01": 2, "2026-03-02": 1, "2026-03-30": 1})
	f.equal("of 28 days", counts(souvenir.OverviewQuery{Days: 28}), map[string]int{"2026-03-29": 1})
	days := f.overview(souvenir.OverviewQuery{Days: 366}).Days
	f.equal("a year", []any{len(days), days[0].Day, days[365].Day}, []any{366, "2025-03-29", "2026-03-29"})
}

func graphEdges(f *fixture) {
	car := f.add(souvenir.NewMemory{Content: "the red car\nstands outside"}).ID
	f.clock.Pass(time.Minute)
	auto := f.add(souvenir.NewMemory{Content: "a red automobile"}).ID
	f.clock.Pass(time.Minute)
	f.add(souvenir.NewMemory{Content: "tea", Related: []string{car, auto}})
	f.clock.Pass(time.Minute)
	f.add(souvenir.NewMemory{Content: "a red automobile"})
	g := f.graph(souvenir.GraphQuery{MemoryList: souvenir.MemoryList{Sort: souvenir.SortCreatedAsc}, Similar: 0.99})
	f.same("nodes", labels(g.Nodes), "the red car", "a red automobile", "tea", "a red automobile")
	f.equal("edges", g.Edges, []souvenir.Edge{{From: 2, To: 0, Kind: souvenir.EdgeRelated},
		{From: 2, To: 1, Kind: souvenir.EdgeRelated},
		{From: 1, To: 3, Kind: souvenir.EdgeSimilar, Score: g.Edges[len(g.Edges)-1].Score,
			Shared: "automobile, red"}})
	if score := g.Edges[2].Score; score < 0.999 || score > 1 {
		f.Errorf("equal texts have the similarity %v, want one of 0.999 to 1", score)
	}
	f.equal("without neighbours", len(f.graph(souvenir.GraphQuery{Neighbours: -1}).Edges), 2)
	f.equal("everything alike", len(f.graph(souvenir.GraphQuery{Neighbours: 10, Similar: -1}).Edges), 2+6)
	f.equal("limited", len(f.graph(souvenir.GraphQuery{MemoryList: souvenir.MemoryList{Sort: souvenir.SortCreatedAsc},
		Limit: 2, Neighbours: -1}).Edges), 0)
}

func graphSelects(f *fixture) {
	var ids []string
	for i := range 6 {
		ids = append(ids, f.add(souvenir.NewMemory{Content: fmt.Sprint("number ", i), ProjectID: fmt.Sprint("p", i%3),
			EventType: []string{"case", "note"}[i%2], Importance: souvenir.ImportanceHigh}).ID)
		f.clock.Pass(time.Minute)
	}
	f.patch(ids[0], map[string]any{"state": "done"})
	g := f.graph(souvenir.GraphQuery{Limit: 3})
	f.same("the last updated", labels(g.Nodes), "number 0", "number 5", "number 4")
	f.equal("total", g.Total, 6)
	want := souvenir.Node{ID: ids[0], Label: "number 0", Collection: souvenir.DefaultCollection, Owner: souvenir.LocalUser,
		ProjectID: "p0", ProjectOwner: souvenir.LocalUser, EventType: "case", State: "done",
		Importance: souvenir.ImportanceHigh, CreatedAt: start, UpdatedAt: f.clock.Now()}
	f.sameJSON("node", toJSON(g.Nodes[0]), toJSON(want))
	for order, first := range map[souvenir.SortOrder]string{souvenir.SortCreatedAsc: "number 0",
		souvenir.SortCreatedDesc: "number 5", souvenir.SortUpdatedAsc: "number 1", souvenir.SortUpdatedDesc: "number 0"} {
		f.same(string(order), labels(f.graph(souvenir.GraphQuery{MemoryList: souvenir.MemoryList{Sort: order}}).Nodes)[:1],
			first)
	}
	f.same("filtered", labels(f.graph(souvenir.GraphQuery{MemoryList: souvenir.MemoryList{
		Filter: souvenir.Filter{"event_type": "note",
			"project_id": souvenir.In("p0", "p1")}}}).Nodes), "number 3", "number 1")
	f.same("of a project", labels(f.graph(souvenir.GraphQuery{MemoryList: souvenir.MemoryList{ProjectID: "p2"}}).Nodes),
		"number 5", "number 2")
	none := f.graph(souvenir.GraphQuery{MemoryList: souvenir.MemoryList{ProjectID: "unknown"}})
	f.equal("of an unknown project", []any{len(none.Nodes), none.Total, len(none.Warnings)}, []any{0, 0, 1})
	f.equal("lists that are never nil", []any{none.Nodes != nil, none.Edges != nil}, []any{true, true})
}

func mapPlaces(f *fixture) {
	for i := range 12 {
		f.addTexts([]string{"the red car", "hot tea", "apple pear plum"}[i%3])
	}
	m := f.layOut(souvenir.MapQuery{})
	f.equal("points", []any{len(m.Points), m.Total, m.Unplaced}, []any{12, 12, 0})
	most := 0.0
	for _, p := range m.Points {
		most = max(most, math.Abs(p.X), math.Abs(p.Y))
		for _, o := range m.Points {
			if apart := math.Hypot(p.X-o.X, p.Y-o.Y); (apart < 1e-3) != (p.Label == o.Label) {
				f.Errorf("%q and %q are %g apart, got %v, want %v", p.Label, o.Label, apart, (apart < 1e-3), (p.Label == o.Label))
			}
		}
	}
	f.equal("the farthest", most, 1.0)
	if sum := m.Explained[0] + m.Explained[1]; sum < 0.99 || sum > 1.0001 || m.Explained[0] < m.Explained[1] {
		f.Errorf("of three places two directions explain %v, want the first at least as much as the second and 1 in "+
			"all", m.Explained)
	}
	f.equal("another time", f.layOut(souvenir.MapQuery{}), m)
	f.equal("of two", len(f.layOut(souvenir.MapQuery{Limit: 2}).Points), 2)
	f.equal("of nothing", f.as(souvenir.Access{User: "noah"}).layOut(souvenir.MapQuery{}),
		souvenir.Map{Points: []souvenir.Point{}})
}

func mapNeighbours(f *fixture) {
	for i := range 12 {
		f.addTexts([]string{"the red car", "hot tea", "apple pear plum"}[i%3])
	}
	q := souvenir.MapQuery{Layout: souvenir.LayoutNeighbours, Limit: 20, Sample: true}
	m := f.layOut(q)
	for _, p := range m.Points {
		var near souvenir.Point
		least := math.Inf(1)
		for _, o := range m.Points {
			if apart := math.Hypot(p.X-o.X, p.Y-o.Y); o.ID != p.ID && apart < least {
				near, least = o, apart
			}
		}
		if near.Label != p.Label || least == 0 {
			f.Errorf("%q is next to %q, %g apart; want another one that says the same, not in the same place", p.Label,
				near.Label, least)
		}
	}
	f.equal("clusters", len(m.Clusters), 3)
	for _, c := range m.Clusters {
		f.equal("a cluster", []any{len(c.Nodes), c.Name != ""}, []any{4, true})
	}
	f.equal("another time", f.layOut(q), m)
	f.equal("by axes", f.layOut(souvenir.MapQuery{}).Version, m.Version)
	f.addTexts("hot tea")
	q.Start = &m
	again := f.layOut(q)
	f.equal("with one more", []any{len(again.Points), again.Version == m.Version}, []any{13, false})
	q.Layout = souvenir.LayoutKept
	f.equal("version of the kept layout with it", f.layOut(q).Version, again.Version)
	f.clock.Pass(time.Minute)
	graph := f.graph(souvenir.GraphQuery{})
	f.equal("clusters of the graph", len(graph.Clusters), 3)
	for _, edge := range graph.Edges {
		if edge.Shared == "" {
			f.Errorf("an edge from %q to %q shares no words, want some", graph.Nodes[edge.From].Label,
				graph.Nodes[edge.To].Label)
		}
	}
}

func mapUnplaced(f *fixture) {
	f.addTexts("the red car")
	f.imported([]byte(`{"souvenir":"export","version":1}` + "\n" + `{"type":"memory","content":" "}` +
		"\n")) // which AddMemory refuses
	f.addCollection(souvenir.NewCollection{Name: "own", VectorSize: 2, OwnVectors: true})
	f.add(souvenir.NewMemory{Collection: "own", Content: "own vector", Embedding: []float32{1, 0}})
	f.embedder.Break(errOffline)
	f.addTexts("waits")
	m := f.layOut(souvenir.MapQuery{})
	f.equal("points", []any{len(m.Points), m.Total, m.Unplaced}, []any{1, 4, 3})
	f.equal("connected", len(f.graph(souvenir.GraphQuery{Similar: -1}).Edges), 0)
	f.embedder.Mend()
}

func picturesRefuse(f *fixture) {
	for argument, q := range map[string]souvenir.GraphQuery{
		"limit": {Limit: souvenir.MaxNodes + 1}, "neighbours": {Neighbours: 11}, "similar": {Similar: 1.5},
		"sort_order":      {MemoryList: souvenir.MemoryList{Sort: souvenir.SortRelevance}},
		"collection_name": {MemoryList: souvenir.MemoryList{Collections: []string{"nowhere"}}},
	} {
		_, err := f.reader.Insights().Graph(f.ctx, q)
		kind := souvenir.ErrInvalid
		if argument == "collection_name" {
			kind = souvenir.ErrNotFound
		}
		f.failsAt("Graph", err, kind, argument)
	}
	_, err := f.reader.Insights().Map(f.ctx, souvenir.MapQuery{Limit: -1})
	f.failsAt("Map", err, souvenir.ErrInvalid, "limit")
	_, err = f.reader.Insights().Map(f.ctx, souvenir.MapQuery{Layout: "circle"})
	f.failsAt("Map", err, souvenir.ErrInvalid, "layout")
	_, err = f.reader.Insights().Map(f.ctx, souvenir.MapQuery{Layout: souvenir.LayoutKept})
	f.failsAt("Map", err, souvenir.ErrInvalid, "start")
	_, err = f.reader.Insights().Overview(f.ctx, souvenir.OverviewQuery{Days: 367})
	f.failsAt("Overview", err, souvenir.ErrInvalid, "days")
}
