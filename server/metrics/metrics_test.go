package metrics_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
	"github.com/souvenir-ai/souvenir/server/metrics"
)

// measured is a server with metrics, after some requests.
func measured(t *testing.T) (m *metrics.Metrics, w *servertest.World) {
	t.Helper()
	m = metrics.New(&metrics.Options{Version: "v1.2.3", Revision: "abc"})
	p := servertest.Template(t)
	store := p.Copy(t).Open(t, &souvenir.Options{Hooks: []souvenir.Hooks{m.Hooks()}})
	m.Watch(store)
	w = servertest.Serve(t, p, store, server.Options{OnRequest: m.Answered, OnCall: m.Called})
	w.Do(servertest.Owner, "GET", "/api/files/"+w.File, "").Expect(http.StatusOK)
	w.Do(servertest.Guest, "GET", "/api/files", "").Expect(http.StatusUnauthorized)
	w.Do(servertest.Owner, "GET", "/api/"+servertest.Secret, "").Expect(http.StatusNotFound)
	w.Call(servertest.Owner, "memory", `{"action": "search", "query": "`+servertest.Secret+`"}`)
	w.Call(servertest.Owner, servertest.Secret, `{}`)
	m.BackedUp(metrics.Backup{Made: time.Unix(1_700_000_000, 0), Bytes: 7, Kept: 1, Duration: time.Second})
	m.BackedUp(metrics.Backup{Err: errors.New("no room"), Made: time.Unix(1_700_000_000, 0), Bytes: 7, Kept: 1,
		Duration: time.Second})
	return m, w
}

// page returns a page that Prometheus reads.
func page(t *testing.T, m *metrics.Metrics, path string) (status int, body string) {
	t.Helper()
	at := httptest.NewServer(m.Handler())
	t.Cleanup(at.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := at.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(content)
}

func TestMetricsCountRequestsCallsAndTheStore(t *testing.T) {
	m, _ := measured(t)
	status, got := page(t, m, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("got %d %s, want 200", status, got)
	}
	for _, line := range []string{
		`souvenir_http_requests_total{class="2xx",route="GET /api/files/{id}"} 1`,
		`souvenir_http_requests_total{class="4xx",route="none"} 1`,
		`souvenir_http_request_duration_seconds_count{route="GET /api/files/{id}"} 1`,
		`souvenir_refused_total{reason="credential"} 1`,
		`souvenir_refused_total{reason="sign_in"} 0`,
		`souvenir_tool_calls_total{action="search",outcome="ok",tool="memory"} 1`,
		`souvenir_tool_calls_total{action="",outcome="not_found",tool="none"} 1`,
		`souvenir_operations_total{kind="search",method="Search",outcome="ok"} 1`,
		`souvenir_store_up 1`, `souvenir_problem{kind="disk_full"} 0`, `souvenir_files 2`,
		`souvenir_embedding_pending 0`, `souvenir_writes_in_progress 0`, `souvenir_index_evictions_total 0`,
		`souvenir_backups_total{outcome="ok"} 1`, `souvenir_backups_total{outcome="failed"} 1`,
		`souvenir_backup_last_timestamp_seconds 1.7e+09`,
		`revision="abc",version="v1.2.3"} 1`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("the page lacks a line, want %s", line)
		}
	}
	if t.Failed() {
		t.Logf("the page:\n%s", regexp.MustCompile(`(?m)^(#|go_|.*_bucket).*\n`).ReplaceAllString(got, ""))
	}
}

// The readers of a monitoring system are not those of the store.
func TestMetricsTellNothingOfUsersAndWhatTheyStore(t *testing.T) {
	m, w := measured(t)
	_, got := page(t, m, "/metrics")
	for _, private := range []string{servertest.Secret, "olivia", "shop", w.Users[servertest.Owner], w.File, w.Memory,
		"menu.txt"} {
		if private == "" || strings.Contains(strings.ToLower(got), strings.ToLower(private)) {
			t.Errorf("the page has %q, want no data of users", private)
		}
	}
}

// Labels have fixed sets of values: a stranger cannot fill the memory of the monitoring system.
func TestStrangersMakeNoNewSeries(t *testing.T) {
	m, w := measured(t)
	series := func() int {
		_, got := page(t, m, "/metrics")
		return strings.Count(got, "\nsouvenir_")
	}
	before := series()
	for _, path := range []string{"/a", "/b", "/api/files/x", "/c?d=e"} {
		w.Do(servertest.Guest, "GET", path, "")
		w.Do(servertest.Guest, "PUT", path, "")
	}
	for _, tool := range []string{"a", "b", "c"} {
		w.Call(servertest.Owner, tool, `{"action": "`+tool+`"}`)
	}
	between := series()
	for i := range 20 {
		w.Do(servertest.Guest, "GET", "/x"+strings.Repeat("y", i), "")
	}
	if after := series(); after != between || between > before+40 {
		t.Errorf("%d series, then %d, then %d; want few more, and then none", before, between, after)
	}
}

func TestProblemsAreForTheOperator(t *testing.T) {
	m, w := measured(t)
	if status, got := page(t, m, "/problems"); status != http.StatusOK || got != `{"up":true,"problems":[]}`+"\n" {
		t.Errorf("got %d %s, want no problems", status, got)
	}
	if err := w.Store.Close(); err != nil {
		t.Fatal(err)
	}
	status, got := page(t, m, "/problems")
	if status != http.StatusServiceUnavailable || !strings.Contains(got, "closed") {
		t.Errorf("a closed store: got %d %s, want 503 and why", status, got)
	}
	if _, got := page(t, m, "/metrics"); !strings.Contains(got, "souvenir_store_up 0\n") {
		t.Errorf("got a closed store that is up, want souvenir_store_up 0: %s", got)
	}
}

// named matches the metrics in an expression.
var named = regexp.MustCompile(`\b(souvenir|go|process)_[a-z_]+`)

// The dashboard, the alerts and the operations page name existing metrics, and the page explains all of Souvenir's own.
func TestTheDashboardAndTheAlertsReadExistingMetrics(t *testing.T) {
	m, _ := measured(t)
	names, err := m.Names()
	if err != nil {
		t.Fatal(err)
	}
	const dashboard, alerts, operations = "../../packaging/grafana/souvenir.json",
		"../../packaging/prometheus/alerts.yaml", "../../docs/operations.md"
	for _, path := range []string{dashboard, alerts, operations} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := named.FindAllString(string(content), -1)
		if len(found) < 10 {
			t.Errorf("%s names %v, want metrics", path, found)
		}
		for _, name := range found {
			base := name
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				base = strings.TrimSuffix(base, suffix)
			}
			if !slices.Contains(names, name) && !slices.Contains(names, base) {
				t.Errorf("%s names %s, which is not exported, want it exported", path, name)
			}
		}
		if path != operations {
			continue
		}
		for _, name := range names {
			if strings.HasPrefix(name, "souvenir_") && !slices.Contains(found, name) {
				t.Errorf("%s does not mention %s, want it there", path, name)
			}
		}
	}
}

// Grafana accepts files with invalid panels, and shows nothing in them.
func TestTheDashboardIsWellFormed(t *testing.T) {
	content, err := os.ReadFile("../../packaging/grafana/souvenir.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Title         string
		UID           string
		SchemaVersion int
		Panels        []struct {
			ID          int
			Type        string
			Title       string
			Description string
			Datasource  struct{ UID string }
			FieldConfig struct {
				Defaults struct{ Thresholds struct{ Steps []any } }
			}
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q: want an id of its own, and a title", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && (len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" || p.Description == "" ||
			!slices.Contains([]string{"stat", "timeseries"}, p.Type)) {
			t.Errorf("%q is %+v, want a description, and queries of the chosen source", p.Title, p)
		}
		if p.Type == "stat" && len(p.FieldConfig.Defaults.Thresholds.Steps) == 0 { // its color would mean nothing
			t.Errorf("%q has no thresholds, want one for each color", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q overlaps %q, or crosses the edge, want a place of its own", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	if d.Title == "" || d.UID == "" || d.SchemaVersion < 30 || len(ids) < 20 {
		t.Errorf("got %q, %q, schema %d, %d panels; want a dashboard", d.Title, d.UID, d.SchemaVersion, len(ids))
	}
}

// A page of another site whose name resolves to this machine cannot read the metrics. (Over a network any name is
// allowed.)
func TestAPageOfAnotherSiteReadsNoMetrics(t *testing.T) {
	at := httptest.NewServer(metrics.New(&metrics.Options{}).Handler())
	t.Cleanup(at.Close)
	for host, want := range map[string]int{"": http.StatusOK, "localhost:9464": http.StatusOK,
		"[::1]": http.StatusOK, "rebound.example:9464": http.StatusForbidden} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.URL+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		answer, err := at.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("host %q: got status %d, want %d", host, answer.StatusCode, want)
		}
	}
}
