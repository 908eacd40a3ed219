package dashboard_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/upkeep"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// preferences are those of a caller.
func preferences(w *servertest.World, caller string) map[string]any {
	w.T.Helper()
	all, err := w.Store.As(souvenir.Access{User: w.Users[caller]}).Preferences(w.T.Context())
	if err != nil {
		w.T.Fatal(err)
	}
	return all
}

func TestPreferencesOnThePage(t *testing.T) {
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	first := b.Get("/settings").Expect(http.StatusOK, "theme", servertest.Secret)
	set := func(key, value string, want any) *servertest.Page {
		t.Helper()
		p := b.Submit(b.Get("/settings"), "/settings", url.Values{"key": {key}, "value": {value}})
		page := landsAt(b, p, "/settings?undo=").Expect(http.StatusOK, "is saved", "Undo")
		if got := preferences(w, servertest.Owner)[key]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %#v, want %#v", key, got, want)
		}
		return page
	}
	set("answers", "short", "short")
	set("size", "3", 3.0)
	set("list", `["a", true]`, []any{"a", true})
	set("place", `{"town": "Husum", "land": "DE"}`, map[string]any{"town": "Husum", "land": "DE"})
	p := set("place", `{"town": "Kiel"}`, map[string]any{"town": "Kiel"}) // replaced, and not merged
	b.Submit(p, "/undo", nil).Expect(http.StatusSeeOther)
	if got := preferences(w, servertest.Owner)["place"]; !reflect.DeepEqual(got, map[string]any{"town": "Husum",
		"land": "DE"}) {
		t.Errorf("undone, it is %v, want %v", got, map[string]any{"town": "Husum", "land": "DE"})
	}
	p = b.Post("/settings", url.Values{"csrf": {first.Hidden().Get("csrf")}, "key": {"theme"}, "remove": {"yes"}})
	p = landsAt(b, p, "/settings?undo=").Expect(http.StatusOK, "is removed").Without(servertest.Secret)
	b.LeadsTo(b.Submit(p, "/undo", nil), "/settings?done=undone").Expect(http.StatusOK, servertest.Secret)

	for text, wrong := range map[string]url.Values{
		"Name is empty": {"key": {" "}, "value": {"typed"}}, "Value is null": {"key": {"a"}, "value": {"null"}},
	} {
		servertest.CheckPage(w, b.Submit(first, "/settings", wrong).Expect(http.StatusBadRequest, text, `value="`+
			wrong.Get("value")+
			`"`))
	}
	w.SignedIn(servertest.Reader).Get("/settings").Expect(http.StatusOK, "Nothing here yet.").Without(servertest.Secret,
		"This server")
}

func TestAllPreferencesAsJSON(t *testing.T) {
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	p := b.Get("/settings")
	for text, typed := range map[string]string{
		"not valid JSON in line 2, character 8": "{\n  \"a\": oops\n}", "are empty": "", "not a JSON object": "[1]",
		"end too early": `{"a": 1`, "more text after their object": `{"a": 1} {"b": 2}`,
	} {
		servertest.CheckPage(w, b.Submit(p, "/settings/whole", url.Values{"whole": {typed}}).Expect(http.StatusBadRequest,
			text))
	}
	servertest.CheckPage(w, b.Submit(p, "/settings/whole",
		url.Values{"whole": {`{"a": "` + servertest.Hostile[:5] + `"`}}).Expect(http.StatusBadRequest).Without("<scri\""))
	if got := preferences(w, servertest.Owner); !reflect.DeepEqual(got, map[string]any{"theme": servertest.Secret}) {
		t.Errorf("they are %v, want %v", got, map[string]any{"theme": servertest.Secret})
	}
	if _, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).UpdatePreferences(t.Context(),
		map[string]any{"meanwhile": true}); err != nil {
		t.Fatal(err)
	}
	b.Submit(p, "/settings/whole", url.Values{"whole": {`{"mine": 1}`}}).Expect(http.StatusBadRequest, "changed elsewhere",
		"&#34;mine&#34;: 1")
	page := landsAt(b, b.Submit(b.Get("/settings"), "/settings/whole", url.Values{"whole": {`{"mine": 1, "none": {}}`}}),
		"/settings?undo=").Expect(http.StatusOK, "are replaced")
	if got := preferences(w, servertest.Owner); !reflect.DeepEqual(got, map[string]any{"mine": 1.0,
		"none": map[string]any{}}) {
		t.Errorf("they are %v, want %v", got, map[string]any{"mine": 1.0, "none": map[string]any{}})
	}
	b.Submit(page, "/undo", nil).Expect(http.StatusSeeOther)
	if got := preferences(w, servertest.Owner); !reflect.DeepEqual(got, map[string]any{"theme": servertest.Secret,
		"meanwhile": true}) {
		t.Errorf("undone, they are %v, want %v", got, map[string]any{"theme": servertest.Secret, "meanwhile": true})
	}
}

// How the server is set up is for admins to know.
func TestSettingsOfTheServer(t *testing.T) {
	w := servertest.New(t, server.Options{Settings: []server.Setting{{Name: "--max-file", Value: "5MiB",
		Meaning: servertest.Hostile,
		Given:   true}, {Name: "--listen", Meaning: "where"}}})
	p := w.SignedIn(servertest.Admin).Get("/settings").Expect(http.StatusOK, "This server", w.Database.Name(),
		"--max-file",
		"5MiB",
		"100.0 MiB", servertest.PublicAt, "last 30 days, at most 100,000")
	servertest.CheckPage(w, p)
}

func TestAbout(t *testing.T) {
	w := servertest.New(t, server.Options{Version: "v1.2.3"})
	servertest.CheckPage(w, w.SignedIn(servertest.Owner).Get("/about").Expect(http.StatusOK, "v1.2.3", server.APIVersion,
		w.Database.Engine(), "htmx 2").Without("world.db", "The whole store"))
	servertest.CheckPage(w, w.SignedIn(servertest.Admin).Get("/about").Expect(http.StatusOK, w.Database.Name(),
		"The whole store"))
	b := w.Browser()
	b.LeadsTo(b.Get("/about"), "/login?next=%2Fabout")
}

func TestLengthsOfTimeAsTheyWereChosen(t *testing.T) {
	for chosen, want := range map[time.Duration]string{
		30 * 24 * time.Hour: "30 days", 24 * time.Hour: "1 day", 72*time.Hour + 10*time.Minute: "72h10m", time.Hour: "1h",
		10 * time.Second: "10s", 90 * time.Second: "1m30s", 10 * time.Minute: "10m",
	} {
		if got := upkeep.LongSpan(chosen); got != want {
			t.Errorf("%v: %q, want %q", chosen, got, want)
		}
	}
}

// A value that is refused leaves the one that was there.
func TestARefusedPreferenceChangesNothing(t *testing.T) {
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	before := map[string]any{"town": "Husum", "streets": map[string]any{"a": "Alley"}}
	if _, err := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]}).UpdatePreferences(t.Context(),
		map[string]any{"place": before}); err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
	b.Submit(b.Get("/settings"), "/settings", url.Values{"key": {"place"}, "value": {deep}}).Expect(http.StatusBadRequest)
	if got := preferences(w, servertest.Owner)["place"]; !reflect.DeepEqual(got, before) {
		t.Errorf("place is %.200v, want %v", got, before)
	}
	b.Submit(b.Get("/settings"), "/settings",
		url.Values{"key": {"place"}, "value": {`{"streets": {"b": "Bay"}}`}}).Expect(http.StatusSeeOther)
	if got, want := preferences(w, servertest.Owner)["place"],
		map[string]any{"streets": map[string]any{"b": "Bay"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("place is %v, want %v", got, want)
	}
}
