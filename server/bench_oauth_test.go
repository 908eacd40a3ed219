package server_test

import (
	"github.com/souvenir-ai/souvenir/server/internal/servertest"

	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

// These benchmarks measure OAuth: refreshes per second over 16 connections, and what checking an access token adds to a
// call.
//
//	go test ./server -run '^$' -bench OAuth -benchtime 3s

// oauthBench is a server with a user and an application to authorize.
type oauthBench struct {
	store  *souvenir.Store
	view   *souvenir.Store
	at     *httptest.Server
	client souvenir.RegisteredClient
}

func newOAuthBench(b *testing.B) *oauthBench {
	b.Helper()
	ctx := context.Background()
	store, err := souvenir.Open(ctx, filepath.Join(b.TempDir(), "bench.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	user, err := store.Accounts().AddUser(ctx, souvenir.NewUser{Name: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	client, err := store.Accounts().RegisterClient(ctx,
		souvenir.ClientRegistration{RedirectURIs: []string{servertest.Callback}})
	if err != nil {
		b.Fatal(err)
	}
	at := httptest.NewServer(server.New(store, &server.Options{PublicURL: servertest.PublicAt}))
	at.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = 64
	b.Cleanup(func() { at.Close(); store.Close() })
	return &oauthBench{store, store.As(souvenir.Access{User: user.ID}), at, client}
}

// addGrant makes a new grant.
func (h *oauthBench) addGrant(b *testing.B) souvenir.TokenSet {
	b.Helper()
	code, err := h.view.Accounts().Authorize(context.Background(),
		souvenir.Authorization{ClientID: h.client.ID, RedirectURI: servertest.Callback,
			Scopes: []souvenir.Scope{souvenir.ScopeMemoryWrite}})
	if err != nil {
		b.Fatal(err)
	}
	set, err := h.store.Accounts().ExchangeCode(context.Background(),
		souvenir.CodeExchange{Client: souvenir.ClientCredentials{ID: h.client.ID, Secret: h.client.Secret},
			Code: code.Code, RedirectURI: servertest.Callback, Issuer: servertest.PublicAt, Audience: servertest.PublicAt})
	if err != nil {
		b.Fatal(err)
	}
	return set
}

// do sends a request and reads the answer.
func (h *oauthBench) do(b *testing.B, r *http.Request, into any) {
	response, err := h.at.Client().Do(r)
	if err != nil {
		b.Error(err)
		return
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil || response.StatusCode != http.StatusOK {
		b.Errorf("%d %v, want %v", response.StatusCode, err, http.StatusOK)
	}
}

// BenchmarkOAuthRefresh refreshes over 16 connections at once, each with its own grant. Each answer is on disk before
// it is sent.
func BenchmarkOAuthRefresh(b *testing.B) {
	h := newOAuthBench(b)
	const connections = 16
	var tokens [connections]string
	for i := range tokens {
		tokens[i] = h.addGrant(b).RefreshToken
	}
	b.ResetTimer()
	began := time.Now()
	var all sync.WaitGroup
	for i := range tokens {
		all.Go(func() {
			for range b.N/connections + 1 {
				r, err := http.NewRequest(http.MethodPost, h.at.URL+"/oauth/token",
					strings.NewReader(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens[i]}}.Encode()))
				if err != nil {
					b.Error(err)
					return
				}
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.SetBasicAuth(h.client.ID, h.client.Secret)
				var set souvenir.TokenSet
				h.do(b, r, &set)
				tokens[i] = set.RefreshToken
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64((b.N/connections+1)*connections)/time.Since(began).Seconds(), "refreshes/s")
}

// BenchmarkOAuthCheck checks credentials: alone, and as a part of a minimal call.
func BenchmarkOAuthCheck(b *testing.B) {
	h := newOAuthBench(b)
	access := h.addGrant(b).AccessToken
	own, err := h.view.Accounts().AddToken(context.Background(), souvenir.NewToken{Name: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("library/access token", func(b *testing.B) {
		for b.Loop() {
			if _, err := h.store.Accounts().CheckAccessToken(context.Background(),
				souvenir.AccessTokenCheck{Token: access, Issuer: servertest.PublicAt,
					Audience: []string{servertest.PublicAt}}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("library/MCP token", func(b *testing.B) {
		for b.Loop() {
			if _, err := h.store.Accounts().CheckToken(context.Background(), own.Value); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, token := range map[string]string{"access token": access, "MCP token": own.Value} {
		b.Run("http/"+name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				r, err := http.NewRequest(http.MethodGet, h.at.URL+"/api/projects", nil)
				if err != nil {
					b.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer "+token)
				var list server.ProjectList
				h.do(b, r, &list)
				took = append(took, time.Since(began))
			}
			reportMedian(b, took)
		})
	}
}
