package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

func TestProjectsHaveTabsOfTheirContents(t *testing.T) {
	w := servertest.New(t, server.Options{})
	olivia, rita, sam := w.SignedIn(servertest.Owner), w.SignedIn(servertest.Reader), w.SignedIn(servertest.Stranger)
	first := olivia.Get(shop(w)).Expect(http.StatusOK)
	for _, tab := range []string{"memories", "files", "conversations", "rules", "todo", "context", "members"} {
		path := shop(w) + "/" + tab
		first.Expect(http.StatusOK, `href="`+path+`"`)
		servertest.CheckPage(w, olivia.Get(path).Expect(http.StatusOK, `href="`+path+`" aria-current="page"`))
		rita.Get(path).Expect(http.StatusOK)
		sam.Get(path).Expect(http.StatusNotFound)
	}
	first.Expect(http.StatusOK, `<dt>Memories</dt><dd><a href="`+shop(w)+`/memories">1</a>`)
}

func TestMemoriesOfAProjectAreSearched(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	fill(w, servertest.Owner, souvenir.NewMemory{Content: "The till sticks in winter.", ProjectID: "shop"},
		souvenir.NewMemory{Content: "A till at home, in no project."})
	olivia := w.SignedIn(servertest.Owner)
	olivia.Get(shop(w)+"/memories").Expect(http.StatusOK, "2 memories, recently updated first", "The till sticks",
		"The shop opens at nine.").Without("at home")
	olivia.Get(shop(w)+"/memories?q=why+does+the+till+stick").Expect(http.StatusOK, "1 memory matches").Without("at home")
	olivia.Get(shop(w)+"/memories?q=zyxwvut").Expect(http.StatusOK, "No matches. These are the closest")
	olivia.Get(shop(w)+"/memories?q="+strings.Repeat("x", souvenir.MaxQuery+1)).Expect(http.StatusBadRequest,
		"The search text is 65537 bytes; at most 65536 are allowed.")
	olivia.Get(shop(w)+"/memories?page=99999999").Expect(http.StatusOK, "No memories yet")
}

func TestFilesOfAProjectAreListed(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	olivia := w.SignedIn(servertest.Owner)
	olivia.Get(shop(w)+"/files").Expect(http.StatusOK, "1 file, newest first", `href="/files/`+w.File+`"`, "menu.txt")
	w.SignedIn(servertest.Reader).Get(shop(w)+"/files").Expect(http.StatusOK, "menu.txt").Without("upload")
	m := fill(w, servertest.Owner, souvenir.NewMemory{Content: "In no project."})[0]
	if _, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).UpdateFile(t.Context(), w.File,
		souvenir.FileUpdate{MemoryID: &m}); err != nil {
		t.Fatal(err)
	}
	olivia.Get(shop(w)+"/files").Expect(http.StatusOK, "No files yet").Without("menu.txt")
}

func TestConversationsOfAProjectAreRead(t *testing.T) {
	w := servertest.New(t, server.Options{})
	store := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	chat := store.Conversation("counter & till", souvenir.ConversationPlace{ProjectID: "shop"})
	for i := range 35 {
		if _, err := chat.Append(t.Context(), souvenir.Turn{Role: "user", Speaker: "Ida",
			Content: fmt.Sprintf("Line *%02d* of it.", i)}); err != nil {
			t.Fatal(err)
		}
	}
	other := store.Conversation("private")
	if _, err := other.Append(t.Context(), souvenir.Turn{Role: "user", Content: "Not of the shop."}); err != nil {
		t.Fatal(err)
	}
	fill(w, servertest.Owner, souvenir.NewMemory{Content: "Stored otherwise.", ProjectID: "shop",
		Metadata: map[string]any{"conversation_id": "harbour"}})
	rita := w.SignedIn(servertest.Reader)
	list := shop(w) + "/conversations"
	rita.Get(list).Expect(http.StatusOK, "Line *00* of it.", "35 messages", "Stored otherwise.",
		"1 message").Without("Not of the shop")
	key := url.Values{"key": {"counter & till"}, "in": {"conversations"}}.Encode()
	first := rita.Get(list+"?"+key).Expect(http.StatusOK, "<b>Ida</b>", "Line <em>29</em> of it.").Without("<em>30</em>")
	servertest.CheckPage(w, first)
	next := ""
	for _, link := range first.HTML.All("a") {
		if strings.Contains(link.Attr("href"), "from=") {
			next = link.Attr("href")
		}
	}
	rita.Get(next).Expect(http.StatusOK, "<em>30</em>", "<em>34</em>", "From the beginning").
		Without("<em>29</em>", "Later messages")
	rita.Get(list + "?key=none").Expect(http.StatusNotFound)
	rita.Get(list + "?key=private&in=secrets").Expect(http.StatusBadRequest)
	rita.Get(list + "?key=harbour&in=default&from=noon").Expect(http.StatusBadRequest)
	w.SignedIn(servertest.Stranger).Get(list + "?" + key).Expect(http.StatusNotFound)
}
