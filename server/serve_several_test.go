package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// twoServers returns two servers on one database, each with its own store.
func twoServers(t *testing.T, options server.Options) (servers [2]*servertest.World) {
	t.Helper()
	p := servertest.Template(t)
	d := p.Copy(t)
	for i := range servers {
		servers[i] = servertest.Serve(t, p, d.Open(t, nil), options)
	}
	return servers
}

// at returns the same browser at another server.
func at(b *servertest.Browser, w *servertest.World) *servertest.Browser {
	there := *b
	there.W = w
	return &there
}

func TestServersCountWrongPasswordsTogether(t *testing.T) {
	longtest.Only(t)
	servers := twoServers(t, server.Options{LoginTries: 4})
	ticks := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for _, w := range servers {
		server.SetLoginClock(w.Server, ticks.now)
	}
	setPassword(servers[0], servertest.Owner)
	wrong := func(i int, name string) {
		t.Helper()
		login(servers[i%2].Browser(), name, wrongPassword).Expect(http.StatusUnauthorized)
	}
	for _, name := range []string{"olivia", "noah"} {
		for i := range 4 {
			wrong(i, name)
		}
		for _, w := range servers {
			login(w.Browser(), name, rightPassword).Expect(http.StatusTooManyRequests, "wait 2 seconds")
		}
		ticks.pass(3 * time.Second)
	}
	// A right password at one server resets the count at the other.
	login(servers[1].Browser(), "olivia", rightPassword).Expect(http.StatusSeeOther)
	for i := range 4 {
		wrong(i, "olivia")
	}
	login(servers[1].Browser(), "olivia", rightPassword).Expect(http.StatusTooManyRequests)
	// A server that starts later knows the count, too.
	late := servertest.Serve(t, servers[0].Plan, servers[0].Store, server.Options{LoginTries: 4})
	server.SetLoginClock(late.Server, ticks.now)
	login(late.Browser(), "olivia", rightPassword).Expect(http.StatusTooManyRequests)
}

func TestServersCountRegistrationsTogether(t *testing.T) {
	longtest.Only(t)
	servers := twoServers(t, server.Options{})
	expectRegistrations(t, func(i int) servertest.Answer { return registerFrom(servers[i%2], "198.51.100.7") })
	registerFrom(servers[0], "198.51.100.8").Expect(http.StatusCreated)
}

// registerFrom registers a client from an address.
func registerFrom(w *servertest.World, address string) servertest.Answer {
	w.T.Helper()
	r := w.Request(servertest.Guest, "POST", "/oauth/register", strings.NewReader(
		`{"redirect_uris": ["https://client.example/callback"], "token_endpoint_auth_method": "none"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Forwarded-For", address)
	return w.Send(r)
}

// expectRegistrations registers clients until one is refused: after a burst of 100, and one more every 6 seconds.
func expectRegistrations(t *testing.T, register func(i int) servertest.Answer) {
	t.Helper()
	began, accepted := time.Now(), 0
	a := register(0)
	for ; a.Status == http.StatusCreated && accepted < 200; a = register(accepted) {
		accepted++
	}
	if most := 101 + int(time.Since(began)/(6*time.Second)); accepted < 100 || accepted > most {
		t.Errorf("clients registered before a refusal: got %d, want 100 to %d", accepted, most)
	}
	refused(a, http.StatusTooManyRequests, "temporarily_unavailable", "try again in")
	if seconds := a.Header.Get("Retry-After"); len(seconds) != 1 || seconds == "0" {
		t.Errorf("Retry-After: got %q, want 1 to 6 seconds", seconds)
	}
}

// If a consent form is sent to several servers, in any order, only one accepts it.
func TestServersTakeAConsentOnce(t *testing.T) {
	servers := twoServers(t, server.Options{})
	app := servers[0].Register("none")
	b := servers[0].SignedIn(servertest.Owner)
	for _, first := range []int{0, 1} {
		form := b.Get(app.AuthorizeURL()).Hidden()
		form.Set("decision", "allow")
		at(b, servers[first]).Post("/oauth/authorize", form).GoesTo(servertest.Callback)
		for _, w := range []*servertest.World{servers[1-first], servers[first]} {
			at(b, w).Post("/oauth/authorize", form).Stays(http.StatusBadRequest, "out of date")
		}
	}
}

// One server's next search finds what another has answered.
func TestServersFindWhatAnotherHasAnswered(t *testing.T) {
	longtest.Only(t)
	servers := twoServers(t, server.Options{})
	for i := range 10 {
		content := fmt.Sprintf("The courier number %d brings parcel %d%d.", i, i, i)
		a, _ := servers[i%2].Call(servertest.Writer, "memory", fmt.Sprintf(
			`{"action": "store", "content": %q, "project_id": "shop"}`, content))
		a.Expect(http.StatusOK)
		_, found := servers[(i+1)%2].Call(servertest.Owner, "memory",
			fmt.Sprintf(`{"action": "search", "query": %q}`, content))
		if !strings.Contains(found, content) {
			t.Errorf("search %d at the other server: got %s, want %q in it", i, found, content)
		}
	}
}

// A server with a read-only store counts alone.
func TestAReadOnlyServerCountsByItself(t *testing.T) {
	longtest.Only(t)
	p := servertest.Template(t)
	d := p.Copy(t)
	writable := servertest.Serve(t, p, d.Open(t, nil), server.Options{})
	setPassword(writable, servertest.Owner)
	w := servertest.Serve(t, p, d.Open(t, &souvenir.Options{ReadOnly: true}), server.Options{LoginTries: 3})
	for range 3 {
		login(w.Browser(), "olivia", wrongPassword).Expect(http.StatusUnauthorized)
	}
	login(w.Browser(), "olivia", wrongPassword).Expect(http.StatusTooManyRequests)
}
