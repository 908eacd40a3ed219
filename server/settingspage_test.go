package server_test

import (
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
func (w *world) preferences(caller string) map[string]any {
	w.t.Helper()
	all, err := w.store.As(souvenir.Access{User: w.users[caller]}).Preferences(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func TestPreferencesOnThePage(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.signedIn(owner)
	first := b.get("/settings").expect(http.StatusOK, "theme", secret)
	set := func(key, value string, want any) *gotPage {
		t.Helper()
		p := b.submit(b.get("/settings"), "/settings", url.Values{"key": {key}, "value": {value}})
		page := b.landsAt(p, "/settings?undo=").expect(http.StatusOK, "is saved", "Undo")
		if got := w.preferences(owner)[key]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %#v, want %#v", key, got, want)
		}
		return page
	}
	set("answers", "short", "short")
	set("size", "3", 3.0)
	set("list", `["a", true]`, []any{"a", true})
	set("place", `{"town": "Husum", "land": "DE"}`, map[string]any{"town": "Husum", "land": "DE"})
	p := set("place", `{"town": "Kiel"}`, map[string]any{"town": "Kiel"}) // replaced, and not merged
	b.submit(p, "/undo", nil).expect(http.StatusSeeOther)
	if got := w.preferences(owner)["place"]; !reflect.DeepEqual(got, map[string]any{"town": "Husum", "land": "DE"}) {
		t.Errorf("taken back, it is %v", got)
	}
	p = b.post("/settings", url.Values{"csrf": {first.hidden().Get("csrf")}, "key": {"theme"}, "remove": {"yes"}})
	p = b.landsAt(p, "/settings?undo=").expect(http.StatusOK, "is removed").without(secret)
	b.leadsTo(b.submit(p, "/undo", nil), "/settings?done=undone").expect(http.StatusOK, secret)

	for text, wrong := range map[string]url.Values{
		"Name is empty": {"key": {" "}, "value": {"typed"}}, "Value is null": {"key": {"a"}, "value": {"null"}},
	} {
		checkPage(w, b.submit(first, "/settings", wrong).expect(http.StatusBadRequest, text, `value="`+wrong.Get("value")+
			`"`))
	}
	w.signedIn(reader).get("/settings").expect(http.StatusOK, "Nothing here yet.").without(secret, "This server")
}

func TestAllPreferencesAsJSON(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.signedIn(owner)
	p := b.get("/settings")
	for text, typed := range map[string]string{
		"not valid JSON in line 2, character 8": "{\n  \"a\": oops\n}", "are empty": "", "not a JSON object": "[1]",
		"end too early": `{"a": 1`, "more text after their object": `{"a": 1} {"b": 2}`,
	} {
		checkPage(w, b.submit(p, "/settings/whole", url.Values{"whole": {typed}}).expect(http.StatusBadRequest, text))
	}
	checkPage(w, b.submit(p, "/settings/whole",
		url.Values{"whole": {`{"a": "` + hostile[:5] + `"`}}).expect(http.StatusBadRequest).without("<scri\""))
	if got := w.preferences(owner); !reflect.DeepEqual(got, map[string]any{"theme": secret}) {
		t.Errorf("they are %v", got)
	}
	if _, err := w.store.As(souvenir.Access{User: w.users[owner]}).UpdatePreferences(t.Context(),
		map[string]any{"meanwhile": true}); err != nil {
		t.Fatal(err)
	}
	b.submit(p, "/settings/whole", url.Values{"whole": {`{"mine": 1}`}}).expect(http.StatusBadRequest, "changed elsewhere",
		"&#34;mine&#34;: 1")
	page := b.landsAt(b.submit(b.get("/settings"), "/settings/whole", url.Values{"whole": {`{"mine": 1, "none": {}}`}}),
		"/settings?undo=").expect(http.StatusOK, "are replaced")
	if got := w.preferences(owner); !reflect.DeepEqual(got, map[string]any{"mine": 1.0, "none": map[string]any{}}) {
		t.Errorf("they are %v", got)
	}
	b.submit(page, "/undo", nil).expect(http.StatusSeeOther)
	if got := w.preferences(owner); !reflect.DeepEqual(got, map[string]any{"theme": secret, "meanwhile": true}) {
		t.Errorf("taken back, they are %v", got)
	}
}

// How the server is set up is for admins to know.
func TestSettingsOfTheServer(t *testing.T) {
	w := newWorld(t, server.Options{Settings: []server.Setting{{Name: "--max-file", Value: "5MiB", Meaning: hostile,
		Given: true}, {Name: "--listen", Meaning: "where"}}})
	p := w.signedIn(admin).get("/settings").expect(http.StatusOK, "This server", "world.db", "--max-file", "5MiB",
		"100.0 MiB", publicAt, "last 30 days, at most 100,000")
	checkPage(w, p)
}

func TestAbout(t *testing.T) {
	w := newWorld(t, server.Options{Version: "v1.2.3"})
	checkPage(w, w.signedIn(owner).get("/about").expect(http.StatusOK, "v1.2.3", server.APIVersion, "SQLite",
		"htmx 2").without("world.db", "The whole store"))
	checkPage(w, w.signedIn(admin).get("/about").expect(http.StatusOK, "world.db", "The whole store"))
	b := w.browser()
	b.leadsTo(b.get("/about"), "/login?next=%2Fabout")
}

func TestLengthsOfTimeAsTheyWereChosen(t *testing.T) {
	for chosen, want := range map[time.Duration]string{
		30 * 24 * time.Hour: "30 days", 24 * time.Hour: "1 day", 72*time.Hour + 10*time.Minute: "72h10m", time.Hour: "1h",
		10 * time.Second: "10s", 90 * time.Second: "1m30s", 10 * time.Minute: "10m",
	} {
		if got := server.LongSpan(chosen); got != want {
			t.Errorf("%v: %q, want %q", chosen, got, want)
		}
	}
}

// A value that is refused leaves the one that was there.
func TestARefusedPreferenceChangesNothing(t *testing.T) {
	w := newWorld(t, server.Options{})
	b := w.signedIn(owner)
	before := map[string]any{"town": "Husum", "streets": map[string]any{"a": "Alley"}}
	if _, err := w.store.As(souvenir.Access{User: w.users[owner]}).UpdatePreferences(t.Context(),
		map[string]any{"place": before}); err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
	b.submit(b.get("/settings"), "/settings", url.Values{"key": {"place"}, "value": {deep}}).expect(http.StatusBadRequest)
	if got := w.preferences(owner)["place"]; !reflect.DeepEqual(got, before) {
		t.Errorf("place is %.200v, want %v", got, before)
	}
	b.submit(b.get("/settings"), "/settings",
		url.Values{"key": {"place"}, "value": {`{"streets": {"b": "Bay"}}`}}).expect(http.StatusSeeOther)
	if got, want := w.preferences(owner)["place"],
		map[string]any{"streets": map[string]any{"b": "Bay"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("place is %v, want %v", got, want)
	}
}
