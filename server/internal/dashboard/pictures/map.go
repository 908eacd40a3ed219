package pictures

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// mapInWords is the table view of a map: the memories at its ends show what the directions mean.
type mapInWords struct {
	Ends         []mapEnd
	Shown, Total int
	Unplaced     int
	Explained    percents
	Warnings     []string
}

// mapEnd is the memories farthest in one direction, the farthest first.
type mapEnd struct {
	Name   string
	Points []souvenir.Point
}

// percents are the explained variances of the two directions.
type percents struct{ Across, Up int }

// Both is the variance that the map explains as a whole.
func (p percents) Both() int { return p.Across + p.Up }

func percentsOf(explained [2]float64) percents {
	return percents{int(100*explained[0] + 0.5), int(100*explained[1] + 0.5)}
}

// showMap shows the page of the map.
func (s *Service) showMap(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	return s.showPicture(r, c, "map", "Map", func(q pictureQuery) (any, error) { return s.mapWords(r.Context(), c, q) })
}

func (s *Service) readMap(ctx context.Context, c request.Caller, q pictureQuery) (m souvenir.Map, err error) {
	limit, err := q.limit()
	if err != nil {
		return m, err
	}
	err = s.busy.Do(ctx, func() error {
		m, err = c.Store.Insights().Map(ctx, souvenir.MapQuery{List: q.list(), Limit: limit})
		return err
	})
	return m, err
}

// mapWords returns the memories at the ends of a map.
func (s *Service) mapWords(ctx context.Context, c request.Caller, q pictureQuery) (*mapInWords, error) {
	const each = 6
	m, err := s.readMap(ctx, c, q)
	if err != nil {
		return nil, err
	}
	rows := &mapInWords{Shown: len(m.Points), Total: m.Total, Unplaced: m.Unplaced, Explained: percentsOf(m.Explained),
		Warnings: m.Warnings}
	for _, end := range []struct {
		name string
		far  func(p souvenir.Point) float64
	}{
		{"On the left", func(p souvenir.Point) float64 { return -p.X }},
		{"On the right", func(p souvenir.Point) float64 { return p.X }},
		{"At the top", func(p souvenir.Point) float64 { return p.Y }},
		{"At the bottom", func(p souvenir.Point) float64 { return -p.Y }},
	} {
		points := slices.Clone(m.Points)
		slices.SortStableFunc(points, func(a, b souvenir.Point) int { return cmp.Compare(end.far(b), end.far(a)) })
		rows.Ends = append(rows.Ends, mapEnd{end.name, points[:min(each, len(points))]})
	}
	return rows, nil
}

// mapData returns the points of the map.
func (s *Service) mapData(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	m, err := s.readMap(r.Context(), c, readPictureQuery(r.URL.Query()))
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
	d.Total, d.Unplaced, d.Explained, d.Warnings = m.Total, m.Unplaced, m.Explained, append(d.Warnings, m.Warnings...)
	return nil, s.answerPacked(w, r, d)
}
