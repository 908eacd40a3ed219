package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/seed"
	"github.com/souvenir-ai/souvenir/server"
)

// These benchmarks measure the pages' time on the server and their length:
//
//	go test ./server -run '^$' -bench 'Pages|Dashboard' -benchtime 20x

const dashboardMemories = 100_000

// BenchmarkDashboard opens every page of a signed-in user, over the loopback, on a store of 100,000 memories with the
// maximum number of recorded calls.
func BenchmarkDashboard(b *testing.B) {
	path := filepath.Join(b.TempDir(), "dashboard.db")
	filled, err := seed.Fill(b.Context(), path, dashboardMemories)
	if err != nil {
		b.Fatal(err)
	}
	store, err := souvenir.Open(b.Context(), path, nil)
	if err != nil {
		b.Fatal(err)
	}
	at := httptest.NewServer(server.New(store, &server.Options{PublicURL: servertest.PublicAt}))
	b.Cleanup(func() { at.Close(); store.Close() })
	session, err := store.Accounts().AddSignIn(b.Context(), souvenir.NewSignIn{User: filled.User})
	if err != nil {
		b.Fatal(err)
	}
	person, err := store.Accounts().CheckSignIn(b.Context(), session.Value)
	if err != nil {
		b.Fatal(err)
	}
	view := store.As(person.Access)
	for {
		if _, err := view.Search(b.Context(), souvenir.Query{Text: "tiles of the coast"}); err != nil {
			b.Fatal(err)
		}
		overview, err := view.Insights().Overview(b.Context(), souvenir.OverviewQuery{})
		if err != nil {
			b.Fatal(err)
		}
		if overview.Index == souvenir.IndexInMemory {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	paths := dashboardPaths(filled)
	for _, filtered := range []string{"event_type=decision", "archived=hide", "state=archived", "importance=high",
		"tag=database", "q=tiles&event_type=decision", "page=2000", "event_type=decision&sort=" +
			url.QueryEscape(string(souvenir.SortCreatedAsc))} {
		paths["/memories?"+filtered] = "/memories?" + filtered
	}
	for _, pattern := range slices.Sorted(maps.Keys(paths)) {
		b.Run("GET"+pattern, func(b *testing.B) {
			var took []time.Duration
			var size int
			for b.Loop() {
				began := time.Now()
				size = len(openPage(b, at, paths[pattern], session.Value))
				took = append(took, time.Since(began))
			}
			reportMedian(b, took)
			b.ReportMetric(float64(size)/1000, "KB")
		})
	}
}

// dashboardPaths returns an address for each page of a signed-in user. A pattern with unknown parameters is opened
// unchanged, which fails.
func dashboardPaths(filled seed.Filled) map[string]string {
	ids := map[string]string{"/memories/": filled.Memory, "/projects/": filled.Project, "/files/": filled.File,
		"/clients/": "notebook", "/graph/memories/": filled.Memory}
	paths := map[string]string{}
	for _, rt := range server.PageRoutes() {
		if rt.Method != http.MethodGet || rt.Needs != "person" && rt.Needs != "administrator" {
			continue
		}
		path := strings.TrimSuffix(rt.Path, "{$}")
		for start, id := range ids {
			if strings.HasPrefix(path, start) {
				path = strings.NewReplacer("{id}", id, "{owner}", filled.UserID).Replace(path)
			}
		}
		if path == "/graph/data" {
			path += "?limit=5000"
		}
		paths[rt.Path] = path
	}
	delete(paths, "/memories/merge")                // needs similar memories, and none are known here
	for _, kind := range []string{"graph", "map"} { // these need a picture that was drawn
		delete(paths, "/"+kind+"/names")
		delete(paths, "/"+kind+"/found")
	}
	return paths
}

// TestPagesAreListed lists the pages of a signed-in user for e2e/dashboard.sh, which opens them all.
func TestPagesAreListed(t *testing.T) {
	paths := dashboardPaths(seed.Filled{})
	for pattern := range paths {
		fmt.Println("page", pattern)
	}
	if len(paths) < 10 {
		t.Errorf("only %d pages, want at least 10", len(paths))
	}
}

// openPage opens a page and returns its content.
func openPage(b testing.TB, at *httptest.Server, path, session string) string {
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, at.URL+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Cookie", "auth_token="+session)
	answer, err := at.Client().Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("%s: got %s %v %.300s, want %v", path, answer.Status, err, body, http.StatusOK)
	}
	return string(body)
}

// BenchmarkPages opens pages, and signs in. The hashing of the password is slow on purpose.
func BenchmarkPages(b *testing.B) {
	h := newBench(b)
	password := rightPassword
	if _, err := h.store.Accounts().UpdateUser(b.Context(), "bench",
		souvenir.UserUpdate{Password: &password}); err != nil {
		b.Fatal(err)
	}
	session, err := h.store.Accounts().AddSignIn(b.Context(), souvenir.NewSignIn{User: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	client, err := h.store.Accounts().RegisterClient(b.Context(),
		souvenir.ClientRegistration{RedirectURIs: []string{servertest.Callback}, TokenEndpointAuthMethod: souvenir.AuthNone})
	if err != nil {
		b.Fatal(err)
	}
	consent := "/oauth/authorize?" +
		url.Values{"client_id": {client.ID}, "redirect_uri": {servertest.Callback}, "response_type": {"code"},
			"code_challenge_method": {"S256"},
			"code_challenge":        {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}}.Encode()
	stay := &http.Client{Transport: h.at.Client().Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	send := func(b *testing.B, method, path, cookie, form string, status int) string {
		r, err := http.NewRequestWithContext(b.Context(), method, h.at.URL+path, strings.NewReader(form))
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Cookie", cookie)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := stay.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != status {
			b.Fatalf("got %v %v %v, want no error and status code %v", err, answer.Status, string(body), status)
		}
		return string(body)
	}
	for _, page := range []struct{ name, path, cookie string }{
		{"login", "/login", ""}, {"start", "/", "auth_token=" + session.Value},
		{"profile", "/profile", "auth_token=" + session.Value},
		{"connected", "/connected", "auth_token=" + session.Value}, {"consent", consent, "auth_token=" + session.Value},
	} {
		b.Run("GET/"+page.name, func(b *testing.B) {
			for b.Loop() {
				send(b, http.MethodGet, page.path, page.cookie, "", http.StatusOK)
			}
		})
	}
	form := send(b, http.MethodGet, "/login", "souvenir_form=own", "", http.StatusOK)
	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(form)[1]
	fields := url.Values{"csrf": {csrf}, "username": {"bench"}, "password": {rightPassword}}.Encode()
	b.Run("POST/login", func(b *testing.B) {
		for b.Loop() {
			send(b, http.MethodPost, "/login", "souvenir_form=own", fields, http.StatusSeeOther)
		}
	})
	b.Run("hashing", func(b *testing.B) {
		for b.Loop() {
			if _, err := h.store.Accounts().CheckPassword(b.Context(),
				souvenir.Credentials{Name: "bench", Password: rightPassword}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
