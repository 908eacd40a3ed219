package systemtest

import (
	"errors"
	"slices"
	"testing"

	. "github.com/souvenir-ai/souvenir"
)

// recordCalls records calls and waits until they are in the file.
func recordCalls(t *testing.T, s *Store, calls ...NewActivity) {
	t.Helper()
	for _, n := range calls {
		if err := s.Upkeep().RecordActivity(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Insights().ActivityPage(t.Context(), ActivityQuery{}); err != nil { // which waits for them
		t.Fatal(err)
	}
}

var activityVisits = map[string]func(v visit){
	"RecordActivity": func(v visit) {
		v.refuses("RecordActivity", func(s *Store) error {
			return s.Upkeep().RecordActivity(v.Context(),
				NewActivity{Tool: "memory"})
		})
		if p, err := v.n.store.Insights().ActivityPage(v.Context(), ActivityQuery{}); err != nil || len(p.Activities) > 0 {
			v.Errorf("RecordActivity through a view recorded something: got %v, %v, want no error and no activities", err,
				len(p.Activities))
		}
	},
	"ActivityPage": func(v visit) {
		v.checkActivities("ActivityPage", func(s *Store, q ActivityQuery) ([]Activity, error) {
			p, err := s.Insights().ActivityPage(v.Context(), q)
			return p.Activities, err
		})
	},
	"Activities": func(v visit) {
		v.checkActivities("Activities", func(s *Store, q ActivityQuery) (all []Activity, err error) {
			for a, err := range s.Insights().Activities(v.Context(), q) {
				if err != nil {
					return nil, err
				}
				all = append(all, a)
			}
			return all, nil
		})
	},
	"CallDays": func(v visit) {
		recordCalls(v.T, v.n.store, NewActivity{Principal: Principal{Access: Access{User: "eve"}}, Tool: "memory"})
		answer, err := v.self("CallDays", false, func(s *Store, _ string) (any, error) {
			return s.Insights().CallDays(v.Context(), CallDaysQuery{Days: 2})
		})
		if days, ok := answer.([]CallDay); ok && err == nil && v.access.User != "eve" && days[1].Calls > 0 {
			v.Errorf("CallDays shows %s %+v, want no calls of eve", v.access.User, days)
		}
	},
	"Overview": func(v visit) {
		o, err := v.view.Insights().Overview(v.Context(), OverviewQuery{})
		v.check("Overview", o, err)
		total := 0
		for _, p := range o.Projects {
			total += p.Memories
		}
		if err != nil || o.Memories != len(v.sees) || total != len(v.sees) || o.Days[len(o.Days)-1].Memories != len(v.sees) {
			v.Errorf("Overview is %+v for %d memories, %v, want no error, memories %v, total %v and memories %v", o,
				len(v.sees), err, len(v.sees), len(v.sees), len(v.sees))
		}
	},
	"Graph": func(v visit) {
		g, err := v.view.Insights().Graph(v.Context(), GraphQuery{Similar: 0.01, Neighbours: 10})
		v.check("Graph", g, err)
		v.checkNodes("Graph", g.Nodes, g.Total, err)
	},
	"Map": func(v visit) {
		m, err := v.view.Insights().Map(v.Context(), MapQuery{})
		v.check("Map", m, err)
		var nodes []Node
		for _, p := range m.Points {
			nodes = append(nodes, p.Node)
		}
		v.checkNodes("Map", nodes, m.Total, err)
	},
}

// checkActivities checks that a list of recorded calls has the visitor's own only.
func (v visit) checkActivities(what string, list func(*Store, ActivityQuery) ([]Activity, error)) {
	v.Helper()
	want := 0
	for _, m := range neighbours {
		recordCalls(v.T, v.n.store, NewActivity{
			Principal: Principal{Access: Access{User: m.user}}, Tool: "memory", Action: m.name, Client: "client of " + m.name,
			MemoryID: v.n.ids[m.name], Project: ProjectRef{ID: m.project},
		})
		if m.user == v.access.User {
			want++
		}
	}
	answer, err := v.self(what, false, func(s *Store, _ string) (any, error) { return list(s, ActivityQuery{}) })
	if calls, ok := answer.([]Activity); ok && err == nil {
		for _, a := range calls {
			if a.User != v.access.User {
				v.Errorf("%s shows %+v, want calls of %s only", what, a, v.access.User)
			}
		}
		if len(calls) != want {
			v.Errorf("%s has %d calls, want %d", what, len(calls), want)
		}
	}
	for _, user := range []string{"alice", "bob", "eve"} {
		if user == v.access.User {
			continue
		}
		calls, err := list(v.view, ActivityQuery{User: user})
		v.check(what, calls, err)
		if !errors.Is(err, ErrForbidden) {
			v.Errorf("%s of %s gives %v, want ErrForbidden", what, user, err)
		}
	}
}

// checkNodes checks that a diagram shows what the visitor sees.
func (v visit) checkNodes(what string, nodes []Node, total int, err error) {
	v.Helper()
	if err != nil || len(nodes) != len(v.sees) || total != len(v.sees) {
		v.Errorf("%s shows %d memories of %d, want %d, %v", what, len(nodes), total, len(v.sees), err)
	}
	for _, name := range v.sees {
		if !slices.ContainsFunc(nodes, func(n Node) bool { return n.ID == v.n.ids[name] }) {
			v.Errorf("%s does not show %s, want it there", what, name)
		}
	}
}
