package dashboard_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// mostPage is the maximum length of a page in bytes.
const mostPage = 100_000

// A page of memories stays short with any content: characters that become longer in HTML or in an address, endless
// words, many long tags, markup.
func TestPagesOfMemoriesStayShort(t *testing.T) {
	longtest.Only(t)
	for i, piece := range []string{"🫠", "Donaudampfschifffahrt", "\"", "ａ́",
		"**a** ", "tea \"&\" ", "`a`<b>", "茶の話",
		"[a](b) ", "- a\n", "> a\n\n"} {
		if !longtest.Part(i, 4, 11) {
			continue
		}
		t.Run(piece, func(t *testing.T) {
			t.Parallel()
			w := servertest.New(t, server.Options{})
			line := func(most int) string {
				text := []rune(strings.Repeat(strings.ReplaceAll(piece, "\n", " "), most))
				return strings.TrimSpace(string(text[:most-3]))
			}
			var memories []souvenir.NewMemory
			for i := range 60 {
				var tags []string
				for tag := range 64 {
					tags = append(tags, fmt.Sprint(line(100), tag))
				}
				memories = append(memories, souvenir.NewMemory{Content: fmt.Sprint(i, " tea ", strings.Repeat(piece, 2000)),
					Tags: tags, EventType: line(64), State: line(64), ProjectName: line(100)})
			}
			fill(w, servertest.Stranger, memories...)
			sam := w.SignedIn(servertest.Stranger)
			for _, page := range []string{"", "?view=reading", "?q=tea", "?q=tea&view=reading", "?q=tea+a&page=2"} {
				p := sam.Get("/memories" + page).Expect(http.StatusOK)
				if size := len(p.Body); size > mostPage {
					t.Errorf("/memories%s of %q: got %d bytes, want at most %d", page, piece, size, mostPage)
				}
				if n := len(rows(p)); n < 10 {
					t.Errorf("/memories%s of %q: got %d memories, want at least 10", page, piece, n)
				}
			}
		})
	}
}
