package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

func TestEverythingIsFound(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia, sam := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Stranger)
	servertest.CheckPage(w, olivia.Get("/find?q=shop").Expect(http.StatusOK, `href="`+shop(w)+`"><bdi>The shop</bdi>`,
		`href="/memories/`+w.Memory+`"`, `href="/memories?q=shop"`))
	sam.Get("/find?q=shop").Expect(http.StatusOK, "No results.").Without("The shop", w.Memory)
	olivia.Get("/find?q="+strings.Repeat("x", souvenir.MaxQuery+1)).Expect(http.StatusBadRequest,
		"The search text is 65537 bytes; at most 65536 are allowed.")
	servertest.CheckPage(w, olivia.Get("/find?q="+url.QueryEscape(servertest.Hostile)))
	servertest.CheckPage(w, olivia.Get("/find").Expect(http.StatusOK, "The shop").Without("No results"))
}

func TestTwoSettingsOfASearchAreCompared(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	fill(w, servertest.Owner,
		souvenir.NewMemory{Content: "Otters sleep under the pier.", Importance: souvenir.ImportanceLow},
		souvenir.NewMemory{Content: "Otters sleep under the old pier, too.", Importance: souvenir.ImportanceCritical})
	olivia := w.SignedIn(servertest.Owner)
	const search = "/memories/compare?q=otters+sleep+under+the+pier"
	page := olivia.Get(search+"&a_recency=&b_importance=0.3").Expect(http.StatusOK, `id="side-a"`, `id="side-b"`,
		"1 in A", "2 in A", "1 in B", "2 in B", "Important</span> <b>&#43;0.")
	servertest.CheckPage(w, page)
	olivia.Get(search).Expect(http.StatusOK, `<option value="0.3" selected>Much (0.3)</option>`) // B differs at first
	olivia.Get(search+"&a_least=0.5&b_project="+w.Users[servertest.Owner]+"/shop").Expect(http.StatusOK, "not in B")
	olivia.Get(search+"&a_recency=2").Expect(http.StatusBadRequest, "expected a number from 0 to 1")
	w.SignedIn(servertest.Stranger).Get(search + "&b_project=" + w.Users[servertest.Owner] + "/shop").Without("nine")
}

func TestTheContextOfAnyProjectIsShown(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	servertest.CheckPage(w, olivia.Get("/context").Expect(http.StatusOK, "Rules for all your work",
		"How to work with the memory").Without("Project rules: do"))
	olivia.Get("/context?query=when+does+the+shop+open&budget=2000").Expect(http.StatusOK, "opens at nine", "relevance")
	olivia.Get("/context?project="+w.Users[servertest.Owner]+"/shop").Expect(http.StatusOK, "Project rules: do",
		`href="`+shop(w)+`/edit?text=do"`)
	olivia.Get("/context?budget=7").Expect(http.StatusBadRequest, `id="budget-wrong"`)
	w.SignedIn(servertest.Stranger).Get("/context?project=" + w.Users[servertest.Owner] + "/shop").
		Expect(http.StatusNotFound).Without("nine")
}
