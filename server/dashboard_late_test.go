package server_test

import (
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// Pages whose searches would wait for the index come at once, say so, and name the address of the rest. Scripts get
// only the rest from there, people the whole page. Once the index is loaded, the pages are whole.
func TestPagesDoNotWaitForTheIndex(t *testing.T) {
	for name, page := range map[string]struct{ path, rest, early string }{ // early: what only the rest has
		"memories":   {"/memories?q=swordfish", "swordfish", `id="found"`},
		"find":       {"/find?q=swordfish", "swordfish", "No results"},
		"attention":  {"/attention", "Nothing needs your attention", "Nothing needs your attention"},
		"graph":      {"/graph?show=list", "The most connected memories", "The most connected memories"},
		"duplicates": {"/memories/duplicates", "no near duplicates", "no near duplicates"},
		"similar":    {"/memories/MEMORY/similar", "No similar memories", "No similar memories"},
		"compare":    {"/memories/compare?q=swordfish", "swordfish", `id="side-a"`},
		"context":    {"/context?query=swordfish", "tokens in total", "tokens in total"},
	} {
		t.Run(name, func(t *testing.T) {
			w := servertest.New(t, server.Options{})
			server.SetLateFrom(w.Server, 1)
			olivia := w.SignedIn(servertest.Owner)
			path := strings.Replace(page.path, "MEMORY", w.Memory, 1)
			olivia.Get("/memories").Expect(http.StatusOK, "swordfish")
			address, query, _ := strings.Cut(path, "?")
			rest := strings.TrimSuffix(address+"?at-once=yes&"+query, "&")
			first := olivia.Get(path).Expect(http.StatusOK, `hx-trigger="load"`, "htmx.min.js",
				`hx-get="`+strings.ReplaceAll(rest, "&", "&amp;")+`"`, `class="unscripted" href="`).Without(page.early)
			servertest.CheckPage(w, first)
			script := w.Request(servertest.Guest, http.MethodGet, rest, nil)
			script.Header.Set("HX-Request", "true")
			olivia.Send(script).Expect(http.StatusOK, page.rest).Without("<html", "at-once")
			olivia.Get(rest).Expect(http.StatusOK, "<html", page.rest)
			olivia.Get(path).Expect(http.StatusOK, page.rest).Without("at-once", `hx-trigger="load"`)
		})
	}
}

// The address of the rest has the filters of the page; a page with an error waits for nothing and shows it; what has no
// search has no rest.
func TestLatePagesKeepTheirFilters(t *testing.T) {
	w := servertest.New(t, server.Options{})
	server.SetLateFrom(w.Server, 1)
	olivia := w.SignedIn(servertest.Owner)
	olivia.Get("/memories?q=swordfish&event_type=none&page=2").Expect(http.StatusOK,
		`hx-get="/memories?at-once=yes&amp;event_type=none&amp;page=2&amp;q=swordfish"`)
	olivia.Get("/memories/compare?q=fish&a_least=0.5").Expect(http.StatusOK,
		`hx-get="/memories/compare?a_least=0.5&amp;at-once=yes&amp;q=fish"`)
	for path, wrong := range map[string]string{
		"/memories?q=fish&created_from=nonsense": "nonsense",
		"/graph?show=list&neighbours=x":          "eighbours",
		"/memories/duplicates?limit=x":           "imit is",
		"/memories/compare?q=fish&a_recency=lot": "lot",
		"/context?query=fish&budget=x":           "budget",
	} {
		olivia.Get(path).Expect(http.StatusBadRequest, wrong).Without("at-once")
	}
	olivia.Get("/context?query=fish&budget=5").Expect(http.StatusOK, "at-once=yes")
	script := w.Request(servertest.Guest, http.MethodGet, "/context?at-once=yes&query=fish&budget=5", nil)
	script.Header.Set("HX-Request", "true")
	olivia.Send(script).Expect(http.StatusBadRequest, `role="alert"`, "500").Without("<html", "at-once")
	for _, path := range []string{"/graph", "/memories/compare", "/context"} {
		olivia.Get(path).Expect(http.StatusOK).Without("at-once")
	}
}

// With many calls that were not counted yet, the overview comes without their counts, and a script requests these.
func TestOverviewDoesNotWaitForCountsOfCalls(t *testing.T) {
	servertest.NeedsFile(t)
	w := servertest.New(t, server.Options{})
	for _, client := range []string{"kite 2.1", "crane"} {
		n := souvenir.NewActivity{Client: client, Tool: "memory"}
		n.Principal.Access.User = w.Users[servertest.Owner]
		if err := w.Store.Upkeep().RecordActivity(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	olivia := w.SignedIn(servertest.Owner)
	olivia.Get("/activity").Expect(http.StatusOK, "kite 2.1") // which writes what was recorded
	file, err := sql.Open(sql.Drivers()[0], w.Database.File())
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.ExecContext(t.Context(), `INSERT INTO activity (uid, user_uid, credential, credential_id, client, tool,
		action, memory, file, outcome, started_at, duration, bytes)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
		SELECT 'more ' || i, user_uid, credential, credential_id, client, tool, action, memory, file, outcome, started_at,
			duration, bytes FROM activity, n WHERE client = 'kite 2.1'`)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	late := `id="client-counts"`
	p := olivia.Get("/").Expect(http.StatusOK, late, `hx-get="/"`, "Calls are being counted", `href="/trends"`,
		`<span class="number">2</span>`+"\nactive clients").Without("No calls yet")
	servertest.CheckPage(w, p)
	script := w.Request(servertest.Guest, http.MethodGet, "/", nil)
	script.Header.Set("HX-Request", "true")
	script.Header.Set("HX-Target", "client-counts")
	olivia.Send(script).Expect(http.StatusOK, "Calls by client", `href="/activity?client=kite`).Without("<html", late,
		"Calls are being counted")
	olivia.Get("/trends").Expect(http.StatusOK)
	olivia.Get("/").Expect(http.StatusOK, `href="/activity?client=kite`).Without(late, "Calls are being counted")
}
