package server

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/route"
)

func newQuietServer(t *testing.T) (*Server, *souvenir.Store) {
	t.Helper()
	store, err := souvenir.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return New(store, &Options{PublicURL: "http://127.0.0.1:8080",
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}), store
}

// A memory stored while a page is made does not appear in a part of it.
func TestAPageShowsOneState(t *testing.T) {
	s, store := newQuietServer(t)
	view := store.As(souvenir.Access{User: "ann"})
	count := func(r *http.Request) int {
		o, err := view.Insights().Overview(r.Context(), souvenir.OverviewQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return o.Memories
	}
	for _, c := range []struct {
		what     string
		oneState bool
		want     [2]int
	}{
		{"a page", true, [2]int{0, 0}},
		{"a call", false, [2]int{1, 2}},
	} {
		var got [2]int
		handle := func(_ http.ResponseWriter, r *http.Request, _ request.Caller) (any, error) {
			got[0] = count(r)
			if _, err := view.AddMemory(t.Context(), souvenir.NewMemory{Content: "meanwhile"}); err != nil {
				t.Fatal(err)
			}
			got[1] = count(r)
			return nil, nil
		}
		rt := dialectRoute{Route: route.Route{Method: "GET", Handle: handle, OneState: c.oneState}}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if _, err := s.handle(httptest.NewRecorder(), r, rt, request.Caller{Store: view}); err != nil || got != c.want {
			t.Errorf("%s reads %v, %v; want %v", c.what, got, err, c.want)
		}
	}
}

// Every page of a signed-in person shows one state. The other addresses are data for pictures.
func TestPagesAreOfOneState(t *testing.T) {
	s, _ := newQuietServer(t)
	others := []string{"/graph/data", "/map/data", "/graph/names", "/map/names", "/graph/found", "/map/found"}
	pages := 0
	for _, rt := range s.routes() {
		person := rt.Needs == route.Person || rt.Needs == route.Administrator
		if rt.dialect != request.Pages || rt.Method != http.MethodGet || !person {
			continue
		}
		pages++
		if rt.OneState == slices.Contains(others, rt.Pattern) {
			t.Errorf("GET %s: OneState is %t, want it for pages of one state alone", rt.Pattern, rt.OneState)
		}
	}
	if pages < 30 {
		t.Errorf("there are %d pages; want at least 30", pages)
	}
}
