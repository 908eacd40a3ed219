package pictures

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// mapTable is the table view of a map: its clusters.
type mapTable struct {
	Clusters     []clusterRow
	Others       int // clusters that are not listed
	Shown, Total int
	Unplaced     int
	Arranging    bool // the clusters are not known yet
	Warnings     []string
}

// clusterRow is a cluster with some of its memories.
type clusterRow struct {
	Name    string // empty: its memories share no words
	Size    int
	Members []souvenir.Node
}

const (
	clustersListed = 24
	membersListed  = 5
)

// clusterRows returns the largest clusters, and how many more there are.
func clusterRows(clusters []souvenir.Cluster, node func(i int) souvenir.Node) (listed []clusterRow,
	others int) {
	for _, cluster := range clusters[:min(clustersListed, len(clusters))] {
		row := clusterRow{Name: cluster.Name, Size: len(cluster.Nodes)}
		for _, i := range cluster.Nodes[:min(membersListed, len(cluster.Nodes))] {
			member := node(i)
			member.Label = plain(member.Label)
			row.Members = append(row.Members, member)
		}
		listed = append(listed, row)
	}
	return listed, len(clusters) - len(listed)
}

// showMap shows the page of the map.
func (s *Service) showMap(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.showPicture(r, c, "map", "Map",
		func(q pictureQuery) (any, error) { return s.readMapTable(r.Context(), c, q) })
}

// arrangedMap is a map, as far as its places are known.
type arrangedMap struct {
	souvenir.Map
	arranging bool // places or clusters are still being computed
}

// readMap returns a map with the places that are kept; new memories are among similar ones. If the places are not up to
// date, they are computed in the background. As long as none are kept, the first request waits for them for at most
// patience, later ones for at most again. Then all memories are placed by axes.
func (s *Service) readMap(ctx context.Context, c request.Caller, q pictureQuery, patience,
	again time.Duration) (arrangedMap, error) {
	key, query, err := mapQuery(c, q)
	if err != nil {
		return arrangedMap{}, err
	}
	m, upToDate, err := s.keptMap(ctx, c, key, query)
	if err != nil || upToDate {
		return arrangedMap{Map: m}, err
	}
	known := s.maps.get(key) != nil
	done, first := s.arrange(c, key, query)
	if known {
		return arrangedMap{m, true}, nil
	}
	if !first {
		patience = again
	}
	if waited(ctx, done, patience) {
		m, upToDate, err = s.keptMap(ctx, c, key, query)
	}
	return arrangedMap{m, !upToDate}, errors.Join(err, ctx.Err())
}

// mapQuery returns the query of a map by axes, and the key under which its places are kept.
func mapQuery(c request.Caller, q pictureQuery) (mapKey, souvenir.MapQuery, error) {
	limit, err := q.limit()
	return mapKey{c.User.ID, q.memories()}, souvenir.MapQuery{MemoryList: q.list(), Limit: limit, Sample: limit == 0}, err
}

// arrange starts computing the places of a map, as compute does.
func (s *Service) arrange(c request.Caller, key mapKey, q souvenir.MapQuery) (done <-chan struct{}, first bool) {
	q.Layout = souvenir.LayoutNeighbours
	return s.maps.compute(key, c.Store, q)
}

// waited waits for a time at most, and reports whether it was enough.
func waited(ctx context.Context, done <-chan struct{}, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// keptMap returns a map with the places that are kept, if any, and whether these are up to date.
func (s *Service) keptMap(ctx context.Context, c request.Caller, key mapKey, q souvenir.MapQuery) (m souvenir.Map,
	upToDate bool, err error) {
	if q.Start = s.maps.get(key); q.Start != nil {
		q.Layout = souvenir.LayoutKept
	}
	err = s.busy.Do(ctx, func() error {
		m, err = c.Store.Insights().Map(ctx, q)
		return err
	})
	return m, m.Version == "" || q.Start != nil && q.Start.Version == m.Version, err
}

// readMapTable returns the clusters of a map. While none are known, it does not wait for them, unless they are few and
// so take only a moment.
func (s *Service) readMapTable(ctx context.Context, c request.Caller, q pictureQuery) (*mapTable, error) {
	const patience = 20 * time.Millisecond
	key, query, err := mapQuery(c, q)
	if err != nil {
		return nil, err
	}
	if s.maps.get(key) == nil {
		one := query
		if one.Sample = false; one.Limit >= 0 && one.Limit <= souvenir.MaxNodes { // others are refused
			one.Limit = 1 // reading all, to place them by axes, would show no clusters either
		}
		m, err := c.Store.Insights().Map(ctx, one)
		if err != nil || m.Total == 0 {
			return &mapTable{}, err
		}
		if done, _ := s.arrange(c, key, query); !waited(ctx, done, patience) || s.maps.get(key) == nil {
			return &mapTable{Total: m.Total, Arranging: true, Warnings: m.Warnings}, ctx.Err()
		}
	}
	m, err := s.readMap(ctx, c, q, 0, 0)
	if err != nil {
		return nil, err
	}
	table := &mapTable{Shown: len(m.Points), Total: m.Total, Unplaced: m.Unplaced, Arranging: m.arranging,
		Warnings: m.Warnings}
	table.Clusters, table.Others = clusterRows(m.Clusters, func(i int) souvenir.Node { return m.Points[i].Node })
	return table, nil
}

// mapData returns the points of the map.
func (s *Service) mapData(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	const patience, again = 700 * time.Millisecond, 0 // a script that asks again has a picture to show meanwhile
	m, err := s.readMap(r.Context(), c, readPictureQuery(r.URL.Query()), patience, again)
	if err != nil {
		return nil, err
	}
	projects, err := projectLabels(r.Context(), c)
	if err != nil {
		return nil, err
	}
	nodes, places := make([]souvenir.Node, len(m.Points)), make([]float32, 0, 2*len(m.Points))
	for i, point := range m.Points {
		nodes[i] = point.Node
		places = append(places, float32(point.X), float32(point.Y))
	}
	d := draw(nodes, places, projects)
	d.addClusters(m.Clusters)
	d.Total, d.Unplaced, d.Explained, d.Warnings = m.Total, m.Unplaced, m.Explained, append(d.Warnings, m.Warnings...)
	d.Arranging = m.arranging
	return nil, s.answer(w, r, c.User.ID, nodes, d)
}
