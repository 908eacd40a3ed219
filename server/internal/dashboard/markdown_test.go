package dashboard_test

import (
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// Every page that formats a stored text limits the cost, and shows a text above the limit as stored. Without limits,
// this table of 20 KiB takes 2.8 GiB.
func TestPagesWithAWideTableStaySmall(t *testing.T) {
	longtest.Only(t)
	table := strings.Repeat("|a", 3000) + "\n" + strings.Repeat("|-", 3000) + "\n" + strings.Repeat("|\n", 4000)
	w := servertest.New(t, server.Options{})
	store := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	steps := servertest.FirstError{}
	_, err := store.SetTodo(t.Context(),
		souvenir.NewTodo{ProjectID: "shop", Content: "## Constitution\n\n## Spec\n\n" + table +
			"\n## Plan\n\n## Tasks\n\n- [ ] " + strings.Repeat("[a](", 100) + "\n  - " +
			strings.ReplaceAll(strings.TrimSpace(table), "\n", "\n    ") + "\n\n## Gaps\n"})
	steps.Note(err)
	file, err := store.AddFile(t.Context(), souvenir.NewFile{Filename: "wide.md"}, strings.NewReader(table))
	steps.Note(err)
	if steps.Err != nil {
		t.Fatalf("got %v, want nil", steps.Err)
	}
	memory := w.AddMemory(servertest.Owner, souvenir.NewMemory{Content: table, ProjectID: "shop"})
	b, edit := w.SignedIn(servertest.Owner), shop(w)+"/edit"
	for _, key := range []string{"do", "main"} {
		b.Post(edit, writes(b, edit, key, table)).GoesTo(shop(w))
	}
	const note, most = "too complex to format", 64 << 20
	bounded := func(what, note string, page func() *servertest.Page) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p := page()
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s: %d MiB were allocated, want at most %d", what, took>>20, most>>20)
		}
		p.Expect(http.StatusOK)
		if !strings.Contains(p.Body, note) {
			t.Errorf("%s: got %.300q, want in it %q", what, p.Body[max(0, strings.Index(p.Body, "<main")):], note)
		}
	}
	for _, path := range []string{"/memories/" + memory.ID, "/files/" + file.ID, shop(w), shop(w) + "/rules", shop(w) +
		"/todo", shop(w) + "/context", edit + "?text=main"} {
		says := note
		if strings.HasSuffix(path, "/context") || strings.HasSuffix(path, "/todo") {
			says = "" // they cut the text into narrower parts
		}
		bounded(path, says, func() *servertest.Page { return b.Get(path) })
	}
	csrf := b.Get("/profile").Hidden().Get("csrf")
	bounded("the preview of a memory", note, func() *servertest.Page {
		return asks(b, http.MethodPost, "/memories/preview", url.Values{"csrf": {csrf}, "content": {table}})
	})
}
