package dashboard_test

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

func TestOwnersSetHowLongMemoriesOfAProjectStay(t *testing.T) {
	w := servertest.New(t, server.Options{})
	owner := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	ref := souvenir.ProjectRef{ID: "shop"}
	addOld(w, owner, souvenir.NewMemory{Content: "Old opening hours", ProjectID: "shop"})
	rule := func(want time.Duration) {
		t.Helper()
		if p, err := owner.GetProject(t.Context(), ref); err != nil || p.Retention != (souvenir.Retention{After: want}) {
			t.Errorf("the rule is %+v, %v; want %v", p.Retention, err, want)
		}
	}
	olivia, settings, action := w.SignedIn(servertest.Owner), shop(w)+"/settings", shop(w)+"/retention"
	set := func(days string) *servertest.Page {
		return olivia.Submit(olivia.Get(settings), action, url.Values{"days": {days}})
	}
	for _, wrong := range []string{"x", "0", "-1", "1.5", "36501", "99999999999999999999", servertest.Hostile} {
		servertest.CheckPage(w, set(wrong).Expect(http.StatusBadRequest, "expected a whole number from 1 to 36500"))
	}
	rule(0)
	saved := set("36000")
	servertest.CheckPage(w, olivia.Get(saved.Header.Get("Location")).Expect(http.StatusOK,
		"are moved to the trash 36000 days after their last change", `value="36000"`))
	rule(36000 * 24 * time.Hour)

	asked := set("30").Expect(http.StatusOK, "<b>1 memory</b> would go to the trash", "Move 1 memory to the trash")
	servertest.CheckPage(w, asked)
	rule(36000 * 24 * time.Hour)
	olivia.Submit(asked, action, url.Values{"days": {"20"}}).Expect(http.StatusOK, "would go to the trash") // declined
	rule(36000 * 24 * time.Hour)
	shorter := olivia.Submit(asked, action, nil)
	rule(30 * 24 * time.Hour)
	olivia.Get(shop(w)+"/memories").Expect(http.StatusOK, "Memories without a change for 30 days are moved to the trash.")
	w.SignedIn(servertest.Reader).Get(shop(w)+"/memories").Expect(http.StatusOK, "for 30 days are moved to the trash.")
	olivia.LeadsTo(takesBack(olivia, shorter, "30 days after"), settings+"?done=undone")
	rule(36000 * 24 * time.Hour)
	set("").Expect(http.StatusSeeOther)
	rule(0)

	for _, user := range []string{servertest.Reader, servertest.Writer} {
		b := w.SignedIn(user)
		b.Submit(olivia.Get(settings), action, url.Values{"days": {"1"}}).Expect(http.StatusForbidden)
	}
	rule(0)
}

// addOld adds a memory last changed in 2001.
func addOld(w *servertest.World, owner *souvenir.Store, n souvenir.NewMemory) {
	t := w.T
	t.Helper()
	m, err := owner.AddMemory(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	var exported bytes.Buffer
	if _, err := w.Store.Upkeep().Export(t.Context(), &exported, nil); err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(exported.String(), "\n"), func(line string) bool {
		return !strings.Contains(line, m.ID)
	})
	aged := `{"souvenir":"export","version":1}` + "\n" + strings.ReplaceAll(strings.Join(lines, ""),
		`"updated_at":"`+m.UpdatedAt.Format("2006"), `"updated_at":"2001`)
	if err := owner.DeleteMemory(t.Context(), m.ID, &souvenir.DeletionOptions{Erase: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Store.Upkeep().Import(t.Context(), strings.NewReader(aged), nil); err != nil {
		t.Fatal(err)
	}
}

func TestOwnersSetHowLongMemoriesOfACollectionStay(t *testing.T) {
	w := servertest.New(t, server.Options{})
	owner := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	const name = "notes/ä & b"
	if _, err := owner.AddCollection(t.Context(), souvenir.NewCollection{Name: name, Description: "<b>"}); err != nil {
		t.Fatal(err)
	}
	addOld(w, owner, souvenir.NewMemory{Content: "Old opening hours", Collection: name})
	rule := func(want time.Duration) {
		t.Helper()
		c, err := owner.GetCollection(t.Context(), name)
		if err != nil || c.Retention != (souvenir.Retention{After: want}) {
			t.Errorf("the rule is %+v, %v; want %v", c.Retention, err, want)
		}
	}
	olivia, page := w.SignedIn(servertest.Owner), "/collections?"+url.Values{"name": {name}}.Encode()
	servertest.CheckPage(w, olivia.Get("/collections").Expect(http.StatusOK, "notes/ä &amp; b", "&lt;b&gt;", "1 memory"))
	servertest.CheckPage(w, olivia.Get(page).Expect(http.StatusOK, "notes/ä &amp; b"))
	set := func(days string) *servertest.Page {
		return olivia.Submit(olivia.Get(page), "/collections", url.Values{"days": {days}})
	}
	servertest.CheckPage(w, set("x").Expect(http.StatusBadRequest, "expected a whole number from 1 to 36500"))
	set("36000").Expect(http.StatusSeeOther)
	rule(36000 * 24 * time.Hour)
	asked := set("30").Expect(http.StatusOK, "<b>1 memory</b> would go to the trash")
	servertest.CheckPage(w, asked)
	rule(36000 * 24 * time.Hour)
	shorter := olivia.Submit(asked, "/collections", nil)
	rule(30 * 24 * time.Hour)
	olivia.Get("/collections").Expect(http.StatusOK, "Memories without a change for 30 days are moved to the trash.")
	olivia.LeadsTo(takesBack(olivia, shorter, "30 days after"), strings.Replace(page, "?", "?done=undone&", 1))
	rule(36000 * 24 * time.Hour)

	changed := set("35000")
	set("34000")
	takesBack(olivia, changed, "35000 days after").Expect(http.StatusConflict, "the rule has been changed again since")
	rule(34000 * 24 * time.Hour)
	rita := w.SignedIn(servertest.Writer)
	rita.Get(page).Expect(http.StatusNotFound)
	rita.Get("/collections").Expect(http.StatusOK).Without("notes/ä")
	rita.Submit(olivia.Get(page), "/collections", url.Values{"days": {"1"}}).Expect(http.StatusForbidden)
	hers := w.Store.As(souvenir.Access{User: w.Users[servertest.Writer]})
	if _, err := hers.AddCollection(t.Context(), souvenir.NewCollection{Name: "hers"}); err != nil {
		t.Fatal(err)
	}
	rita.Submit(rita.Get("/collections?name=hers"), "/collections", url.Values{"name": {name}, "days": {"1"}}).
		Expect(http.StatusNotFound)
	rule(34000 * 24 * time.Hour)
}
