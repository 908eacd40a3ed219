package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
)

// sentFor sends a request whose sender the application knows: the header stands for its session.
func sentFor(w *servertest.World, user, method, path, body string) servertest.Answer {
	w.T.Helper()
	r := w.Request(servertest.Guest, method, path, strings.NewReader(body))
	r.Header.Set("X-Application-User", user)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return w.Send(r)
}

// application authenticates the sender in the ways that applications may.
func application(r *http.Request) (*souvenir.Principal, error) {
	reading := []souvenir.Scope{souvenir.ScopeMemoryRead}
	switch user := r.Header.Get("X-Application-User"); user {
	case "":
		return nil, nil
	case "noah":
		return nil, souvenir.ErrUnauthenticated
	case "late":
		return nil, &souvenir.Error{Kind: souvenir.KindUnauthenticated, Message: "the session ended at noon"}
	case "barred":
		return nil, &souvenir.Error{Kind: souvenir.KindForbidden, Message: "the plan has no memory"}
	case "broken":
		return nil, errors.New("the table of sessions is gone")
	case "empty":
		return &souvenir.Principal{User: souvenir.User{ID: "olivia"}}, nil
	case "olivia in the shop":
		return &souvenir.Principal{Access: souvenir.Access{User: "olivia", Projects: []string{"shop"}}}, nil
	case "olivia reading":
		return &souvenir.Principal{Access: souvenir.Access{User: "olivia", ReadOnly: true}}, nil
	case "olivia with one scope":
		return &souvenir.Principal{Access: souvenir.Access{User: "olivia"}, Scopes: reading}, nil
	case "olivia without scopes":
		return &souvenir.Principal{Access: souvenir.Access{User: "olivia"}, Scopes: []souvenir.Scope{}}, nil
	case "with a session":
		return &souvenir.Principal{Access: souvenir.Access{User: user}, SignInID: "of the program",
			Scopes: souvenir.Scopes()}, nil
	case "an account manager":
		return &souvenir.Principal{Access: souvenir.Access{User: user},
			Scopes: append(souvenir.DefaultScopes(), souvenir.ScopeAccount)}, nil
	default:
		return &souvenir.Principal{Access: souvenir.Access{User: user}}, nil
	}
}

// A program that embeds the server says which user it works for, within the user's rights.
func TestAuthenticate(t *testing.T) {
	w := servertest.New(t, server.Options{Authenticate: application})
	const store, search = `{"name": "memory", "arguments": {"action": "store", "content": "x"}}`,
		`{"name": "memory", "arguments": {"action": "search", "query": "word"}}`
	for _, c := range []struct {
		user, method, path, body string
		status                   int
		has                      string
		hidden                   bool // nothing that only Olivia may see
	}{
		{"", "GET", "/health", "", 200, "ok", true},
		{"broken", "GET", "/health", "", 200, "ok", true}, // open routes need no authentication
		{"", "GET", "/api/owner-ids/me", "", 401, "no credential", true},
		{"noah", "GET", "/api/owner-ids/me", "", 401, "no user has signed in", true},
		{"late", "GET", "/api/owner-ids/me", "", 401, "the session ended at noon", true},
		{"barred", "POST", "/tools/call", search, 403, "the plan has no memory", true},
		{"broken", "GET", "/api/owner-ids/me", "", 500, "X-Request-Id", true},
		{"empty", "GET", "/api/owner-ids/me", "", 500, "X-Request-Id", true},
		{"dora", "GET", "/api/owner-ids/me", "", 401, "disabled", true},
		{"olivia", "GET", "/api/owner-ids/me", "", 200, `"name":"olivia"`, false},
		{w.Users[servertest.Owner], "GET", "/api/owner-ids/me", "", 200, `"name":"olivia"`, false},
		{"olivia", "POST", "/tools/call", search, 200, servertest.Secret, false},
		{"sam", "POST", "/tools/call", search, 200, "results", true},
		{"a new user", "GET", "/api/owner-ids/me", "", 200, `"owner_id":"a new user"`, true},
		{"a new user", "POST", "/tools/call", store, 200, "created_at", true},
		{"olivia in the shop", "POST", "/tools/call", search, 200, "The shop opens", true},
		{"olivia reading", "POST", "/tools/call", search, 200, servertest.Secret, false},
		{"olivia reading", "POST", "/tools/call", store, 403, "read", true},
		{"olivia with one scope", "POST", "/tools/call", search, 200, servertest.Secret, false},
		{"olivia with one scope", "POST", "/tools/call", store, 403, "memory:write", true},
		{"olivia with one scope", "GET", "/api/files", "", 403, "files:read", true},
		{"olivia without scopes", "POST", "/tools/call", search, 403, "memory:read", true},
		{"olivia without scopes", "GET", "/api/owner-ids/me", "", 403, "memory:read", true},
	} {
		t.Run(fmt.Sprint(c.user, " ", c.method, " ", c.path), func(t *testing.T) {
			a := sentFor(w, c.user, c.method, c.path, c.body).Expect(c.status, c.has).Without("table of sessions")
			if c.hidden {
				a.Without(servertest.Secret)
			}
			if c.status == http.StatusUnauthorized && !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Bearer ") {
				t.Errorf("WWW-Authenticate is %q, want Bearer", a.Header.Get("WWW-Authenticate"))
			}
		})
	}
	for _, cause := range []string{"the table of sessions is gone", "without Access.User"} {
		if strings.Count(w.Log.String(), cause) != 1 {
			t.Errorf("the log does not mention %q once: %s, want 1", cause, w.Log.String())
		}
	}
}

// The application is asked before the credential of the request is checked. If it does not know the sender, the
// credential decides.
func TestAuthenticateComesBeforeTokens(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{Authenticate: application})
	for _, place := range places {
		both := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
		both.Header.Set("X-Application-User", "sam")
		place.put(both, w.Tokens[servertest.Owner])
		w.Send(both).Expect(http.StatusOK, w.Users[servertest.Stranger]).Without(w.Users[servertest.Owner], servertest.Secret)
		refused := w.Request(servertest.Guest, "GET", "/api/owner-ids/me", nil)
		refused.Header.Set("X-Application-User", "noah")
		place.put(refused, w.Tokens[servertest.Owner])
		w.Send(refused).Expect(http.StatusUnauthorized)
	}
	w.Do(servertest.Owner, "GET", "/api/owner-ids/me", "").Expect(http.StatusOK, w.Users[servertest.Owner])
	w.Do(servertest.Revoked, "GET", "/api/owner-ids/me", "").Expect(http.StatusUnauthorized)
}

// Browsers may send an application's session by themselves. Pages of other sites must not be able to change anything
// with it.
func TestAuthenticateAndPagesOfOtherOrigins(t *testing.T) {
	longtest.Only(t)
	w := servertest.New(t, server.Options{Authenticate: application})
	for method, status := range map[string]int{"GET": http.StatusOK, "PUT": http.StatusForbidden,
		"PATCH": http.StatusForbidden} {
		r := w.Request(servertest.Guest, method, "/api/user-preferences", strings.NewReader(`{}`))
		r.Header.Set("X-Application-User", "sam")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		w.Send(r).Expect(status)
	}
	sentFor(w, "sam", "PUT", "/api/user-preferences", `{"theme": "dark"}`).Expect(http.StatusOK)
}

// A user known only to the application gets tokens for other programs. They expire.
func TestTokensOfTheApplicationsUsers(t *testing.T) {
	w := servertest.New(t, server.Options{Authenticate: application})
	var made souvenir.AddedToken
	sentFor(w, "a new user", "POST", "/api/mcp-tokens", `{"name": "laptop"}`).Expect(http.StatusForbidden, "account")
	sentFor(w, "with a session", "POST", "/api/mcp-tokens",
		`{"name": "laptop"}`).Expect(http.StatusOK).Without("of the program")
	sentFor(w, "an account manager", "POST", "/api/mcp-tokens",
		`{"name": "laptop"}`).Expect(http.StatusOK).Decode(&made)
	if left := time.Until(made.ExpiresAt); left > 30*24*time.Hour || left < 29*24*time.Hour {
		t.Errorf("it ends in %v, want at most %v and at least %v", left, 30*24*time.Hour, 29*24*time.Hour)
	}
	w.Tokens["made"] = made.Value
	w.Do("made", "GET", "/api/owner-ids/me", "").Expect(http.StatusOK, `"owner_id":"an account manager"`)
	sentFor(w, "olivia with one scope", "POST", "/api/mcp-tokens", `{"name": "more"}`).Expect(http.StatusForbidden)
	sentFor(w, "an account manager", "POST", "/api/mcp-tokens",
		`{"name": "more", "scopes": ["admin"]}`).Expect(http.StatusForbidden, "admin")
}
