package server_test

import (
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// Every page that formats a stored text bounds what that costs, and shows a text that would cost too much as it is
// stored. Without bounds this table, of 20 KiB, takes 2.8 GiB.
func TestPagesWithAWideTableStaySmall(t *testing.T) {
	table := strings.Repeat("|a", 3000) + "\n" + strings.Repeat("|-", 3000) + "\n" + strings.Repeat("|\n", 4000)
	w := newWorld(t, server.Options{})
	store := w.store.As(souvenir.Access{User: w.users[owner]})
	steps := firstError{}
	_, err := store.SetTodo(t.Context(),
		souvenir.NewTodo{ProjectID: "shop", Content: "## Constitution\n\n## Spec\n\n" + table +
			"\n## Plan\n\n## Tasks\n\n- [ ] " + strings.Repeat("[a](", 100) + "\n  - " +
			strings.ReplaceAll(strings.TrimSpace(table), "\n", "\n    ") + "\n\n## Gaps\n"})
	steps.note(err)
	file, err := store.AddFile(t.Context(), souvenir.NewFile{Filename: "wide.md"}, strings.NewReader(table))
	steps.note(err)
	if steps.err != nil {
		t.Fatal(steps.err)
	}
	memory := w.addMemory(owner, souvenir.NewMemory{Content: table, ProjectID: "shop"})
	b, edit := w.signedIn(owner), w.shop()+"/edit"
	for _, key := range []string{"do", "main"} {
		b.post(edit, b.writes(edit, key, table)).goesTo(w.shop())
	}
	const note, most = "too complex to format", 64 << 20
	bounded := func(what, note string, page func() *gotPage) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p := page()
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s: %d MiB were allocated; at most %d are allowed, got %v, want at most %v", what, took>>20, most>>20,
				took, most)
		}
		p.expect(http.StatusOK)
		if !strings.Contains(p.body, note) {
			t.Errorf("%s says nothing of a text that is too complex: %.300q, got %v, want in it %v", what,
				p.body[max(0, strings.Index(p.body, "<main")):], p.body, note)
		}
	}
	for _, path := range []string{"/memories/" + memory.ID, "/files/" + file.ID, w.shop(), w.shop() + "/rules", w.shop() +
		"/todo", w.shop() + "/context", edit + "?text=main"} {
		says := note
		if strings.HasSuffix(path, "/context") || strings.HasSuffix(path, "/todo") {
			says = "" // they cut the text into parts that are less wide
		}
		bounded(path, says, func() *gotPage { return b.get(path) })
	}
	csrf := b.get("/profile").hidden().Get("csrf")
	bounded("the preview of a memory", note, func() *gotPage {
		return b.asks(http.MethodPost, "/memories/"+memory.ID+"/preview", url.Values{"csrf": {csrf}, "content": {table}})
	})
}
