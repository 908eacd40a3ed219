package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// actingAs returns a context for calls of a user through the server.
func actingAs(ctx context.Context, user string) context.Context {
	return souvenir.WithActor(ctx, func() souvenir.Actor { return souvenir.Actor{User: user, Via: souvenir.ViaServer} })
}

// The page says in sentences who did what, with current names, and links to persons and objects.
func TestTheAuditLogInSentences(t *testing.T) {
	w := servertest.New(t, server.Options{})
	ada := w.Users[servertest.Admin]
	ctx := actingAs(t.Context(), ada)
	added, err := w.Store.Accounts().AddUser(ctx, souvenir.NewUser{Name: "grace <b>", Role: souvenir.RoleAdmin})
	if err != nil {
		t.Fatal(err)
	}
	gone, err := w.Store.Accounts().AddUser(ctx, souvenir.NewUser{Name: "short-lived"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Store.Accounts().DeleteUser(ctx, gone.ID, &souvenir.DeletionOptions{WithMemories: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Store.As(souvenir.Access{User: added.ID}).Accounts().AddToken(t.Context(),
		souvenir.NewToken{Name: servertest.Hostile}); err != nil {
		t.Fatal(err)
	}
	own := w.Store.As(souvenir.Access{User: ada}).Accounts()
	if _, err := own.AddToken(ctx, souvenir.NewToken{Name: "of ada"}); err != nil {
		t.Fatal(err)
	}
	b := w.SignedIn(servertest.Admin)
	p := b.Get("/audit").Expect(http.StatusOK, "added the user grace &lt;b&gt;, as admin", "added the user deleted user ",
		"created a token of grace &lt;b&gt;", "Audit log", "created the token “of ada” of").
		Without("short-lived", servertest.Hostile, "user: ", "projects: 0", ": false")
	servertest.CheckPage(w, p)
	servertest.CheckPage(w, b.Get("/audit?what=token").Expect(http.StatusOK, "created a token of grace").
		Without("added the user"))
	b.Get("/audit?actor="+ada).Expect(http.StatusOK, "Only actions", "added the user grace").
		Without("created a token of grace")
	b.Get("/audit?on="+gone.ID).Expect(http.StatusOK, "deleted the user", "added the user").Without("grace")
	b.Get("/audit?what=tok").Expect(http.StatusOK, "No entries match")
	for _, hostile := range []string{"before=x", "before=-1", "what=" + url.QueryEscape(servertest.Hostile),
		"actor=" + url.QueryEscape(servertest.Hostile), "on=%FF", "actor=%00", "before=99999999999999999999"} {
		servertest.CheckPage(w, b.Get("/audit?"+hostile).Expect(http.StatusOK))
	}
}

// A user of another namespace may have the id of a user here. That user's name must not be shown.
func TestTheAuditLogTellsNamespacesApart(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	ada := w.Users[servertest.Admin]
	other := w.Store.As(souvenir.Access{User: ada, Namespace: "shop"})
	if _, err := other.Accounts().AddToken(actingAs(t.Context(), ada), souvenir.NewToken{Name: "x"}); err != nil {
		t.Fatal(err)
	}
	w.SignedIn(servertest.Admin).Get("/audit?what=token").Expect(http.StatusOK, "<b>user "+ada+"</b>",
		"created a token of user "+ada, "namespace <bdi>shop")
}

// Long logs come in pages, each entry once, newest first.
func TestTheAuditLogComesInParts(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	view := w.Store.As(souvenir.Access{User: w.Users[servertest.Owner]})
	for range 60 {
		if _, err := view.Accounts().AddToken(t.Context(), souvenir.NewToken{Name: "one"}); err != nil {
			t.Fatal(err)
		}
	}
	b := w.SignedIn(servertest.Admin)
	var seen []int64
	for path := "/audit?what=token"; path != ""; {
		p := b.Get(path).Expect(http.StatusOK)
		for _, found := range regexp.MustCompile(`<p class="meta">(\d+) · `).FindAllStringSubmatch(p.Body, -1) {
			seq, _ := strconv.ParseInt(found[1], 10, 64)
			seen = append(seen, seq)
		}
		path = ""
		older := regexp.MustCompile(`href="[^"]*(/audit\?[^"]*before=\d+[^"]*)">Older`)
		if next := older.FindStringSubmatch(p.Body); next != nil {
			path = strings.ReplaceAll(next[1], "&amp;", "&")
		}
		if len(seen) > 200 {
			t.Fatalf("the parts do not end: %v, want at most 200", seen)
		}
	}
	sorted := slices.Clone(seen)
	slices.SortFunc(sorted, func(a, b int64) int { return int(b - a) })
	if len(seen) < 60 || !slices.Equal(seen, sorted) || len(slices.Compact(sorted)) != len(seen) {
		t.Errorf("the parts have the entries %v, want 60 or more, each once, newest first", seen)
	}
}

// An admin can verify the chain. A saved anchor reveals a rewritten log.
func TestTheAuditLogIsVerifiedOnThePage(t *testing.T) {
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Admin)
	p := b.Submit(b.Get("/audit"), "/audit/verify", nil).Expect(http.StatusOK, "The log is intact.")
	servertest.CheckPage(w, p)
	anchor := regexp.MustCompile(`\d+:[0-9a-f]{64}`).FindString(p.Body)
	if anchor == "" {
		t.Fatal("there is no anchor on the page, want NUMBER:HASH")
	}
	b.Submit(b.Get("/audit"), "/audit/verify", url.Values{"anchor": {" " + anchor + "\n"}}).Expect(http.StatusOK,
		"The log is intact.")
	other := anchor[:len(anchor)-1] + map[bool]string{true: "0", false: "1"}[anchor[len(anchor)-1] != '0']
	servertest.CheckPage(w, b.Submit(b.Get("/audit"), "/audit/verify", url.Values{"anchor": {other}}).
		Expect(http.StatusOK, "The log was altered").Without("The log is intact."))
	for _, wrong := range []string{"x", "1:2", "-1:" + anchor[len(anchor)-64:], servertest.Hostile} {
		servertest.CheckPage(w, b.Submit(b.Get("/audit"), "/audit/verify", url.Values{"anchor": {wrong}}).
			Expect(http.StatusBadRequest, "give NUMBER:HASH"))
	}
}

// Only admins see the log: it shows whom they have locked, and what others' clients may do.
func TestTheAuditLogIsForAdmins(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{})
	b := w.SignedIn(servertest.Owner)
	b.Get("/audit").Expect(http.StatusForbidden).Without("added the user", "setting.change")
	b.Post("/audit/verify", b.Get("/profile").Hidden()).Expect(http.StatusForbidden).Without("The log is intact.")
	b.Get("/").Expect(http.StatusOK).Without(`href="/audit"`, "Audit log")
	guest := w.Browser()
	guest.LeadsTo(guest.Get("/audit"), "/login?next=%2Faudit")
	admin := w.SignedIn(servertest.Admin)
	admin.Post("/audit/verify", url.Values{}).Expect(http.StatusForbidden)
}
