package dashboard_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/upkeep"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// preferences returns a caller's preferences.
func preferences(w *servertest.World, caller string) map[string]any {
	w.T.Helper()
	all, err := w.Store.As(souvenir.Access{User: w.Users[caller]}).GetPreferences(w.T.Context())
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
	p := set("account", "12345678901234567890", json.Number("12345678901234567890"))
	b.Submit(p, "/undo", nil).Expect(http.StatusSeeOther)
	set("accounts", `[9007199254740993]`, []any{json.Number("9007199254740993")})
	set("list", `["a", true]`, []any{"a", true})
	set("place", `{"town": "Husum", "land": "DE"}`, map[string]any{"town": "Husum", "land": "DE"})
	p = set("place", `{"town": "Kiel"}`, map[string]any{"town": "Kiel"}) // replaced, not merged
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
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	p := b.Get("/settings")
	for text, typed := range map[string]string{
		"not valid JSON in line 2, character 8": "{\n  \"a\": oops\n}", "are empty": "", "not a JSON object": "[1]",
		"unexpected end": `{"a": 1`, "more text after their object": `{"a": 1} {"b": 2}`,
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

// Only admins see the server's settings.
func TestSettingsOfTheServer(t *testing.T) {
	w := servertest.New(t, server.Options{Settings: []server.Setting{{Name: "--max-file", Value: "5MiB",
		Meaning: servertest.Hostile,
		Given:   true}, {Name: "--listen", Meaning: "where"}}})
	p := w.SignedIn(servertest.Admin).Get("/settings").Expect(http.StatusOK, "This server", w.Database.Name(),
		"--max-file",
		"5MiB",
		"100.0 MiB", servertest.PublicAt, "30 days · the default", "100,000 calls")
	servertest.CheckPage(w, p)
}

// An admin changes settings that no flag fixes, from the next call on. The page says who or what set each.
func TestAdminsChangeSettings(t *testing.T) {
	plan := servertest.Template(t)
	store := plan.Copy(t).Open(t, &souvenir.Options{Changeable: []souvenir.SettingName{souvenir.SettingMemories,
		souvenir.SettingFileBytes, souvenir.SettingActivity}})
	w := servertest.Serve(t, plan, store, server.Options{Settings: []server.Setting{
		{Name: "--text-quota", Value: "5MiB", Meaning: "text", Given: true, Variable: "SOUVENIR_TEXT_QUOTA"},
		{Name: "--trash-days", Value: "3", Meaning: "days", Given: true}}})
	b := w.SignedIn(servertest.Admin)
	p := b.Get("/settings").Expect(http.StatusOK, "Memories per user", "no limit · the default",
		"set by SOUVENIR_TEXT_QUOTA", "set by --trash-days").Without(`value="trash_days"`, `value="bytes"`)
	servertest.CheckPage(w, p)
	change := func(name, value string, more ...string) *servertest.Page {
		form := url.Values{"csrf": {p.Hidden().Get("csrf")}, "name": {name}, "value": {value}}
		for _, one := range more {
			form.Set(one, "yes")
		}
		return b.Post("/settings/server", form)
	}
	quota := func() int {
		t.Helper()
		c, err := w.Store.Upkeep().Configuration(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c.Quota.Memories
	}
	page := landsAt(b, change("memories", " 500 "), "/settings?undo=").Expect(http.StatusOK,
		"500 memories, instead of no limit", "changed here; the default is no limit")
	if quota() != 500 {
		t.Errorf("the quota is %d, want 500", quota())
	}
	b.Submit(page, "/undo", nil).Expect(http.StatusSeeOther)
	if quota() != 0 {
		t.Errorf("undone, the quota is %d, want none", quota())
	}
	change("memories", "500")
	landsAt(b, change("memories", "", "default"), "/settings?undo=").Expect(http.StatusOK, "no limit · the default")
	landsAt(b, change("file_bytes", "2048"), "/settings?undo=").Expect(http.StatusOK, "2.0 GiB")

	for text, wrong := range map[string][2]string{
		"Memories per user is &#34;many&#34;; give a whole number from 0 to":  {"memories", "many"},
		"Memories per user is &#34;-1&#34;":                                   {"memories", "-1"},
		"Calls kept for is &#34;0&#34;; give a whole number from 1 to 36,500": {"activity_days", "0"},
		"cannot be changed here":                                              {"trash_days", "5"},
		"&#34;colour&#34; cannot be changed here":                             {"colour", "5"},
	} {
		servertest.CheckPage(w, change(wrong[0], wrong[1]).Expect(http.StatusBadRequest, text))
	}
	kept := func() time.Duration {
		t.Helper()
		c, err := w.Store.Upkeep().Configuration(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c.KeepActivity
	}
	ask := change("activity_days", "7").Expect(http.StatusOK, "Delete recorded calls?", "30 days", "7 days")
	servertest.CheckPage(w, ask)
	if kept() != 30*24*time.Hour {
		t.Errorf("before the answer, calls are kept for %v, want 30 days", kept())
	}
	landsAt(b, b.Submit(ask, "/settings/server", nil), "/settings?undo=")
	if kept() != 7*24*time.Hour {
		t.Errorf("calls are kept for %v, want 7 days", kept())
	}
	landsAt(b, change("activity_days", "9"), "/settings?undo=") // longer, so no question

	calls, err := w.Store.Insights().ActivityPage(t.Context(), souvenir.ActivityQuery{Limit: 100})
	if err != nil || !slices.ContainsFunc(calls.Activities, func(a souvenir.Activity) bool {
		return strings.HasSuffix(a.Tool, "/settings/server") && a.User == w.Users[servertest.Admin]
	}) {
		t.Errorf("the activity has %v, %v; want the admin's change in it", calls, err)
	}
	w.SignedIn(servertest.Owner).Post("/settings/server", url.Values{"csrf": {p.Hidden().Get("csrf")},
		"name": {"memories"}, "value": {"1"}}).Expect(http.StatusForbidden)
	b.Post("/settings/server", url.Values{"name": {"memories"}, "value": {"1"}}).Expect(http.StatusForbidden)
	if quota() != 0 {
		t.Errorf("the quota is %d, want none: neither may change it", quota())
	}
}

func TestAbout(t *testing.T) {
	longtest.Only(t)
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

// A refused value leaves the old one.
func TestARefusedPreferenceChangesNothing(t *testing.T) {
	longtest.Only(t)
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

// A flag may set an interval of backups that is not in whole hours. It is shown unchanged.
func TestBackupsMoreOftenThanHourlyAreShown(t *testing.T) {
	longtest.Only(t)
	for every, want := range map[time.Duration]string{30 * time.Minute: "30m", 90 * time.Minute: "1h30m"} {
		plan := servertest.Template(t)
		store := plan.Copy(t).Open(t, &souvenir.Options{BackupEvery: every, KeepBackups: 14})
		w := servertest.Serve(t, plan, store, server.Options{Settings: []server.Setting{
			{Name: "--backup-to", Value: "/backups", Meaning: "folder", Given: true},
			{Name: "--backup-every", Value: every.String(), Meaning: "duration", Given: true}}})
		w.SignedIn(servertest.Admin).Get("/settings").Expect(http.StatusOK, want+" · set by --backup-every").
			Without("none are made")
	}
}

// Keeping fewer backups needs an admin's confirmation, and undo does not revert later changes of another admin.
func TestAdminsChangeTheScheduleOfBackups(t *testing.T) {
	plan := servertest.Template(t)
	store := plan.Copy(t).Open(t, &souvenir.Options{BackupEvery: 24 * time.Hour, KeepBackups: 14,
		Changeable: []souvenir.SettingName{souvenir.SettingIndex, souvenir.SettingBackups, souvenir.SettingKept}})
	w := servertest.Serve(t, plan, store, server.Options{Settings: []server.Setting{
		{Name: "--backup-to", Value: "/backups", Meaning: "folder", Given: true},
		{Name: "--embedder", Meaning: "service"}}})
	b := w.SignedIn(servertest.Admin)
	p := b.Get("/settings").Expect(http.StatusOK, "Memory for the search index", "1.0 GiB · the default",
		"Hours between backups", "24 hours · the default", "14 backups · the default",
		"to /backups, each verified by restoring it · set by --backup-to",
		"the default; --embedder changes it")
	servertest.CheckPage(w, p)
	change := func(name, value string) *servertest.Page {
		return b.Post("/settings/server", url.Values{"csrf": {p.Hidden().Get("csrf")}, "name": {name}, "value": {value}})
	}
	set := func() [3]int64 {
		t.Helper()
		c, err := w.Store.Upkeep().Configuration(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return [3]int64{c.IndexMemory >> 20, int64(c.BackupEvery / time.Hour), int64(c.KeepBackups)}
	}
	check := func(when string, want [3]int64) {
		t.Helper()
		if got := set(); got != want {
			t.Errorf("%s, index, hours and backups are %v, want %v", when, got, want)
		}
	}
	landsAt(b, change("index_bytes", "64"), "/settings?undo=").Expect(http.StatusOK, "64.0 MiB, instead of 1.0 GiB")
	first := landsAt(b, change("backup_hours", "48"), "/settings?undo=").Expect(http.StatusOK, "48 hours")
	ask := change("backups_kept", "7").Expect(http.StatusOK, "Keep fewer backups?", "14 backups", "7 backups")
	servertest.CheckPage(w, ask)
	check("before the answer", [3]int64{64, 48, 14})
	landsAt(b, b.Submit(ask, "/settings/server", nil), "/settings?undo=")
	ask = change("backup_hours", "12").Expect(http.StatusOK, "Keep fewer days of backups?")
	landsAt(b, b.Submit(ask, "/settings/server", nil), "/settings?undo=")
	check("answered", [3]int64{64, 12, 7})
	b.Submit(first, "/undo", nil).Expect(http.StatusConflict, "changed again since")
	ask = change("backup_hours", "1").Expect(http.StatusOK, "Keep fewer days of backups?")
	hourly := landsAt(b, b.Submit(ask, "/settings/server", nil), "/settings?undo=")
	hourly.Expect(http.StatusOK, "1 hour · changed here").Without("1 hours")
	for text, wrong := range map[string][2]string{
		"Backups kept is &#34;6&#34;; give a whole number from 7 to 1,000 backups":                    {"backups_kept", "6"},
		"Hours between backups is &#34;0&#34;; give a whole number from 1 to 744 hours":               {"backup_hours", "0"},
		"Memory for the search index is &#34;0&#34;; give a whole number from 1 to 1,073,741,824 MiB": {"index_bytes", "0"},
	} {
		servertest.CheckPage(w, change(wrong[0], wrong[1]).Expect(http.StatusBadRequest, text))
	}
	check("after refusals and an undo that came too late", [3]int64{64, 1, 7})
	plain := servertest.New(t, server.Options{})
	plain.SignedIn(servertest.Admin).Get("/settings").Expect(http.StatusOK, "none; --backup-to schedules them").
		Without("Hours between backups", "Backups kept")
}

// A former admin cannot undo a setting over what another admin has set since.
func TestAFormerAdminUndoesNoSetting(t *testing.T) {
	longtest.Only(t)
	plan := servertest.Template(t)
	store := plan.Copy(t).Open(t, &souvenir.Options{Changeable: []souvenir.SettingName{souvenir.SettingMemories}})
	w := servertest.Serve(t, plan, store, server.Options{})
	b := w.SignedIn(servertest.Admin)
	p := b.Submit(b.Get("/settings"), "/settings/server", url.Values{"name": {"memories"}, "value": {"1000"}})
	page := landsAt(b, p, "/settings?undo=").Expect(http.StatusOK, "Undo")
	if _, err := w.Store.Accounts().AddUser(t.Context(), souvenir.NewUser{Name: "second", Role: souvenir.RoleAdmin,
		Password: "nine blue kettles"}); err != nil {
		t.Fatal(err)
	}
	later, role := int64(2000), souvenir.RoleUser
	if err := w.Store.Upkeep().SetSetting(t.Context(), souvenir.SettingMemories, &later); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Store.Accounts().UpdateUser(t.Context(), w.Users[servertest.Admin],
		souvenir.UserUpdate{Role: &role}); err != nil {
		t.Fatal(err)
	}
	b.Submit(page, "/undo", nil).Expect(http.StatusNotFound)
	all, err := w.Store.Upkeep().Settings(t.Context())
	if err != nil || len(all) != 1 || all[0].Value != later {
		t.Errorf("got %+v, %v; want the later value, %d", all, err, later)
	}
}
