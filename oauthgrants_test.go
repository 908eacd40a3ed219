package souvenir

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/auth/accesstoken"
	"github.com/souvenir-ai/souvenir/internal/auth/clientmeta"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// The internals of OAuth: disabled users, what the file keeps, limits, damage and forgeries.

const (
	testIssuer   = "https://memory.example"
	testResource = "https://memory.example/mcp"
	testCallback = "https://app.example/callback"
)

// openOAuth opens a store whose clock the test sets.
func openOAuth(tb testing.TB) (*Store, *atomic.Int64) {
	tb.Helper()
	passed := new(atomic.Int64)
	began := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	s := openWords(tb, filepath.Join(tb.TempDir(), "oauth.db"),
		Options{Now: func() time.Time { return began.Add(time.Duration(passed.Load())) }})
	return s, passed
}

func mustRegister(tb testing.TB, s *Store) RegisteredClient {
	tb.Helper()
	c, err := s.Accounts().RegisterClient(context.Background(), ClientRegistration{RedirectURIs: []string{testCallback}})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func mustAuthorize(tb testing.TB, s *Store, c RegisteredClient) CodeExchange {
	tb.Helper()
	code, err := s.Accounts().Authorize(context.Background(),
		Authorization{ClientID: c.ID, RedirectURI: testCallback, Scopes: []Scope{ScopeMemoryWrite}})
	if err != nil {
		tb.Fatal(err)
	}
	return CodeExchange{Client: ClientCredentials{ID: c.ID, Secret: c.Secret}, Code: code.Code, RedirectURI: testCallback,
		Issuer: testIssuer, Audience: testResource}
}

// mustLetIn authorizes a client and returns its tokens and the request that refreshes them.
func mustLetIn(tb testing.TB, s, view *Store, c RegisteredClient) (TokenSet, TokenRefresh) {
	tb.Helper()
	x := mustAuthorize(tb, view, c)
	t, err := s.Accounts().ExchangeCode(context.Background(), x)
	if err != nil {
		tb.Fatal(err)
	}
	return t, TokenRefresh{Client: x.Client, RefreshToken: t.RefreshToken, Issuer: testIssuer, Audience: testResource}
}

func checkOf(token string) AccessTokenCheck {
	return AccessTokenCheck{Token: token, Issuer: testIssuer, Audience: []string{testResource}}
}

func wantOAuth(t *testing.T, what string, err error, kind *Error, code string) {
	t.Helper()
	var cause *OAuthError
	if !errors.Is(err, kind) || !errors.As(err, &cause) || cause.Code != code {
		t.Errorf("%s gives %v, want kind %q with %s", what, err, kind.Kind, code)
	}
}

func TestDisablingAUserRevokesGrants(t *testing.T) {
	s, _ := openOAuth(t)
	ann := s.As(Access{User: "ann"})
	c := mustRegister(t, s)
	tokens, refresh := mustLetIn(t, s, ann, c)
	code := mustAuthorize(t, ann, c)
	mustExec(t, s, `UPDATE users SET disabled_at = 1 WHERE uid = 'ann'`)
	_, err := s.Accounts().CheckAccessToken(t.Context(), checkOf(tokens.AccessToken))
	wantOAuth(t, "CheckAccessToken", err, ErrUnauthenticated, OAuthInvalidToken)
	_, err = s.Accounts().RefreshTokens(t.Context(), refresh)
	wantOAuth(t, "RefreshTokens", err, ErrInvalid, OAuthInvalidGrant)
	_, err = s.Accounts().ExchangeCode(t.Context(), code)
	wantOAuth(t, "ExchangeCode", err, ErrInvalid, OAuthInvalidGrant)
	_, err = ann.Accounts().Authorize(t.Context(),
		Authorization{ClientID: c.ID, RedirectURI: testCallback, Scopes: Scopes()})
	wantOAuth(t, "Authorize", err, ErrForbidden, OAuthAccessDenied)
	mustExec(t, s, `UPDATE users SET disabled_at = NULL`)
	if _, err := s.Accounts().CheckAccessToken(t.Context(), checkOf(tokens.AccessToken)); err != nil {
		t.Errorf("the user is back, and the token is not: %v", err)
	}
}

func TestTheAdminScopeCountsForAnAdminOnly(t *testing.T) {
	s, _ := openOAuth(t)
	c := mustRegister(t, s)
	code, err := s.Accounts().Authorize(t.Context(),
		Authorization{ClientID: c.ID, RedirectURI: testCallback, Scopes: []Scope{ScopeAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := s.Accounts().ExchangeCode(t.Context(),
		CodeExchange{Client: ClientCredentials{c.ID, c.Secret}, Code: code.Code, RedirectURI: testCallback,
			Issuer: testIssuer, Audience: testResource})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []Role{RoleUser, RoleAdmin, RoleUser} {
		mustExec(t, s, `UPDATE users SET role = ?`, role)
		p, err := s.Accounts().CheckAccessToken(t.Context(), checkOf(tokens.AccessToken))
		if err != nil || p.Allows(ScopeAdmin) != (role == RoleAdmin) {
			t.Errorf("as %s: %+v, %v, want admin for administrators alone", role, p, err)
		}
	}
}

func TestTheFileKeepsNoSecretOfOAuth(t *testing.T) {
	s, _ := openOAuth(t)
	c := mustRegister(t, s)
	x := mustAuthorize(t, s, c)
	tokens, err := s.Accounts().ExchangeCode(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	next, err := s.Accounts().RefreshTokens(t.Context(),
		TokenRefresh{Client: x.Client, RefreshToken: tokens.RefreshToken, Issuer: testIssuer, Audience: testResource})
	if err != nil {
		t.Fatal(err)
	}
	kept := rowsOf(t, s)
	for what, secret := range map[string]string{"client secret": c.Secret, "code": x.Code,
		"first refresh token": tokens.RefreshToken, "second": next.RefreshToken, "access token": next.AccessToken} {
		if strings.Contains(kept, secret) {
			t.Errorf("the file keeps the %s: got %v, want no %q in it", what, kept, secret)
		}
	}
	if !strings.Contains(kept, c.ID) {
		t.Errorf("the comparison is with nothing: got %v, want %q in it", kept, c.ID)
	}
}

func TestPurgeDeletesInvalidOAuthState(t *testing.T) {
	s, passed := openOAuth(t)
	used := mustRegister(t, s)
	mustRegister(t, s)
	_, refresh := mustLetIn(t, s, s, used)
	mustLetIn(t, s, s, used)
	mustAuthorize(t, s, used) // not used again
	disabled, err := s.Accounts().PutDocumentClient(t.Context(),
		DocumentClient{URL: "https://app.example/client",
			Registration: ClientRegistration{ClientName: "App", RedirectURIs: []string{testCallback}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Accounts().DeactivateClient(t.Context(), disabled.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Accounts().RotateSigningKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after                                  time.Duration
		clients, grants, codes, refresh1, keys int
	}{
		{time.Hour, 3, 3, 3, 3, 2},
		{2 * time.Hour, 3, 3, 3, 3, 1},
		{25 * time.Hour, 2, 2, 0, 3, 1},
		{29 * 24 * time.Hour, 2, 2, 0, 3, 1},
		{31 * 24 * time.Hour, 2, 1, 0, 1, 1},
		{400 * 24 * time.Hour, 2, 0, 0, 0, 1},
	} {
		passed.Store(int64(step.after))
		if step.after == time.Hour || step.after == 29*24*time.Hour { // in use until then
			next, err := s.Accounts().RefreshTokens(t.Context(), refresh)
			if err != nil {
				t.Fatal(err)
			}
			refresh.RefreshToken = next.RefreshToken
			if step.after == 29*24*time.Hour {
				step.refresh1++
			}
		}
		if err := s.db.Write(t.Context(), func(tx db.Tx) error { return purgeOAuth(tx, s.now()) }); err != nil {
			t.Fatal(err)
		}
		var got []int
		err := s.db.Read(t.Context(), func(tx db.Tx) (err error) {
			got, err = db.Column[int](tx,
				`SELECT count(*) FROM oauth_client UNION ALL SELECT count(*) FROM oauth_grant UNION ALL SELECT count(*)
					FROM oauth_code
				UNION ALL SELECT count(*) FROM oauth_token UNION ALL SELECT count(*) FROM signing_key`)
			return err
		})
		if want := []int{step.clients, step.grants, step.codes, step.refresh1, step.keys}; err != nil ||
			!slices.Equal(got, want) {
			t.Errorf("after %v there are %v clients, grants, codes, refresh tokens, keys; want %v (%v)", step.after, got, want,
				err)
		}
	}
}

func TestStrangersCannotFillTheFileWithClients(t *testing.T) {
	s, passed := openOAuth(t)
	s.oauth.clients = longtest.Size(maxClients, 2000)
	mustExec(t, s, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO oauth_client (client_id, kind, name, auth_method, redirect_uris, metadata, created_at, updated_at)
		SELECT 'x' || i, 'registered', '', 'none', '[]', '{}', ?2, ?2 FROM n`, s.oauth.clients-1, s.now())
	mustRegister(t, s)
	_, err := s.Accounts().RegisterClient(t.Context(), ClientRegistration{RedirectURIs: []string{testCallback}})
	wantOAuth(t, "RegisterClient", err, ErrTooLarge, OAuthUnavailable)
	d := DocumentClient{URL: "https://app.example/client",
		Registration: ClientRegistration{ClientName: "App", RedirectURIs: []string{testCallback}}}
	_, err = s.Accounts().PutDocumentClient(t.Context(), d)
	wantOAuth(t, "PutDocumentClient", err, ErrTooLarge, OAuthUnavailable)
	if _, err := s.Accounts().AddClient(t.Context(), NewClient{RedirectURIs: []string{testCallback}}); err != nil {
		t.Errorf("a user's client is refused for strangers' sake: %v", err)
	}
	s.oauth.purged.Store(s.now() + (24 * time.Hour).Microseconds()) // so that the limit purges
	passed.Store(int64(25 * time.Hour))
	mustRegister(t, s)
	if _, err := s.Accounts().PutDocumentClient(t.Context(), d); err != nil {
		t.Error(err)
	}
}

func TestDamagedOAuthRowsAreErrors(t *testing.T) {
	longtest.Only(t)
	for name, damage := range map[string]string{
		"metadata": `UPDATE oauth_client SET metadata = '7'`,
		"uris":     `UPDATE oauth_client SET redirect_uris = 'x'`,
		"scopes":   `UPDATE oauth_grant SET scopes = 'x'`,
		"projects": `UPDATE oauth_grant SET projects = '{}'`,
		"refused":  `UPDATE oauth_grant SET refused = '{}'`,
		"key":      `UPDATE signing_key SET private_key = x'00'`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "damaged.db")
			s := openWords(t, path, Options{})
			tokens, refresh := mustLetIn(t, s, s, mustRegister(t, s))
			mustExec(t, s, damage)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openWords(t, path, Options{}) // with nothing in memory
			_, checked := s.Accounts().CheckAccessToken(t.Context(), checkOf(tokens.AccessToken))
			_, refreshed := s.Accounts().RefreshTokens(t.Context(), refresh)
			_, listed := s.Accounts().SigningKeys(t.Context())
			_, clients := s.Accounts().Clients(t.Context())
			if !errors.Is(refreshed, ErrCorrupt) || name != "metadata" && !errors.Is(checked, ErrCorrupt) {
				t.Errorf("RefreshTokens gives %v, CheckAccessToken %v; want ErrCorrupt", refreshed, checked)
			}
			if errors.Is(listed, ErrCorrupt) != (name == "key") ||
				errors.Is(clients, ErrCorrupt) != (name == "metadata" || name == "uris") {
				t.Errorf("SigningKeys gives %v, Clients %v; want ErrCorrupt where the damage is", listed, clients)
			}
		})
	}
}

func TestOAuthOnAReadOnlyStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "oauth.db")
	s := openWords(t, path, Options{})
	c := mustRegister(t, s)
	tokens, refresh := mustLetIn(t, s, s, c)
	readOnly := openWords(t, path, Options{ReadOnly: true})
	if _, err := readOnly.Accounts().CheckAccessToken(t.Context(), checkOf(tokens.AccessToken)); err != nil {
		t.Errorf("CheckAccessToken: %v", err)
	}
	if _, err := readOnly.Accounts().GetClient(t.Context(), c.ID); err != nil {
		t.Errorf("GetClient: %v", err)
	}
	_, refreshed := readOnly.Accounts().RefreshTokens(t.Context(), refresh)
	_, rotated := readOnly.Accounts().RotateSigningKey(t.Context())
	_, registered := readOnly.Accounts().RegisterClient(t.Context(),
		ClientRegistration{RedirectURIs: []string{testCallback}})
	for what, err := range map[string]error{"RefreshTokens": refreshed, "RotateSigningKey": rotated,
		"RegisterClient": registered} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s gives %v, want ErrReadOnly", what, err)
		}
	}
}

func TestEndedCallsOfOAuthSaySo(t *testing.T) {
	s, _ := openOAuth(t)
	tokens, refresh := mustLetIn(t, s, s, mustRegister(t, s))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	calls := func(ctx context.Context) map[string]error {
		_, checked := s.Accounts().CheckAccessToken(ctx, checkOf(tokens.AccessToken))
		_, refreshed := s.Accounts().RefreshTokens(ctx, refresh)
		return map[string]error{"CheckAccessToken": checked, "RefreshTokens": refreshed,
			"RevokeGrantByToken": s.Accounts().RevokeGrantByToken(ctx,
				Revocation{Client: refresh.Client, Token: tokens.AccessToken})}
	}
	for _, known := range []bool{true, false} { // whether the key is in memory
		if !known {
			s.oauth.keys.Forget()
		}
		for what, err := range calls(ended) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s with a context that has ended gives %v, want context.Canceled", what, err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for what, err := range calls(t.Context()) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s of a closed store gives %v, want ErrClosed", what, err)
		}
	}
}

// A stolen key that has been replaced must not sign later tokens. Whether a revoked token still works must not be
// random.
func TestARetiredKeySignsNothingNew(t *testing.T) {
	s, passed := openOAuth(t)
	tokens, _ := mustLetIn(t, s, s, mustRegister(t, s))
	claims, id, err := s.readAccessToken(t.Context(), tokens.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	known := signingKeyOf(t, s, id)
	passed.Add(int64(time.Minute))
	if _, err := s.Accounts().RotateSigningKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	passed.Add(int64(time.Minute))
	forge := func(at time.Time) string {
		token, err := issued{key: known, issuer: testIssuer, audience: testResource, user: claims.UserID,
			client: claims.ClientID, grant: claims.GrantID, tokenID: "x", scopes: Scopes(), at: at}.sign()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	_, err = s.Accounts().CheckAccessToken(t.Context(), checkOf(forge(s.clock())))
	wantOAuth(t, "a new token of the retired key", err, ErrUnauthenticated, OAuthInvalidToken)
	if _, err := s.Accounts().CheckAccessToken(t.Context(), checkOf(tokens.AccessToken)); err != nil {
		t.Errorf("an old token of the retired key: %v", err)
	}
	mustExec(t, s, `DELETE FROM signing_key WHERE kid = ?`, id)
	_, err = s.Accounts().CheckAccessToken(t.Context(), checkOf(tokens.AccessToken))
	wantOAuth(t, "a token of a key that is gone, though it is in memory", err, ErrUnauthenticated, OAuthInvalidToken)
}

func TestErrorDescriptionsHaveOnlyAllowedCharacters(t *testing.T) {
	if got := fault.OAuthDescription("Invalid client: \"ä\\\n…\" ~ done"); got != "Invalid client: '???...' ~ done" {
		t.Errorf(`got %q, want "Invalid client: '???...' ~ done"`, got)
	}
	e := &OAuthError{Code: "invalid_client", Description: "Invalid client"}
	encoded, err := json.Marshal(e)
	if err != nil || string(encoded) != `{"error":"invalid_client","error_description":"Invalid client"}` ||
		e.Error() != "invalid_client: Invalid client" {
		t.Errorf(`got %s, %v, %v, want no error, encoded {"error":"invalid_client","error_description":"Invalid client"} `+
			`and error "invalid_client: Invalid client"`, encoded, err, e)
	}
	if cause := errors.New("not the client's fault"); !errors.Is(asOAuth(cause, OAuthInvalidScope), cause) {
		t.Error("got an error of the store for the client, want none")
	}
}

// FuzzAccessToken checks that no token is valid but those signed here, byte for byte.
func FuzzAccessToken(f *testing.F) {
	s, _ := openOAuth(f)
	const id = "the-key" // the same in every fuzzing process
	seed := bytes.Repeat([]byte{1}, ed25519.SeedSize)
	mustExec(f, s, `INSERT INTO signing_key (kid, algorithm, private_key, created_at) VALUES (?, ?, ?, 1)`, id,
		accesstoken.Algorithm,
		seed)
	tokens, _ := mustLetIn(f, s, s, mustRegister(f, s))
	genuine := tokens.AccessToken
	parts := strings.Split(genuine, ".")
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	_, foreign, err := ed25519.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{7}, 64)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(genuine)
	for _, h := range []string{
		`{"alg":"none","typ":"at+jwt","kid":"` + id + `"}`, `{"alg":"HS256","typ":"at+jwt","kid":"` + id + `"}`,
		`{"alg":"EdDSA","alg":"none","typ":"at+jwt","kid":"` + id + `"}`,
		`{"alg":"EdDSA","typ":"JWT","kid":"` + id + `"}`, `{"alg":"EdDSA","typ":"at+jwt"}`,
		`{"alg":"EdDSA","typ":"at+jwt","kid":"../../../../dev/null"}`, `{"alg":"EdDSA","typ":"at+jwt","kid":"' OR '1'='1"}`,
		`{"alg":"EdDSA","typ":"at+jwt","kid":["` + id + `"]}`, `{"alg":7}`, `{}`, `null`, `[]`,
		`{"alg":"EdDSA","typ":"at+jwt","kid":"` + id + `","crit":["exp"]}`,
	} {
		for _, c := range []string{parts[1], encode(`{"user_id":"local","user_id":"admin"}`), encode(`null`),
			encode(`{"exp":1e400}`), encode(`{"aud":7,"exp":"x"}`)} {
			signed := encode(h) + "." + c
			mac := hmac.New(sha256.New, public)
			mac.Write([]byte(signed))
			f.Add(signed + ".")
			f.Add(signed + "." + parts[2])
			f.Add(signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)))
			f.Add(signed + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(foreign, []byte(signed))))
		}
	}
	ctx := context.Background()
	f.Fuzz(func(t *testing.T, token string) {
		p, err := s.Accounts().CheckAccessToken(ctx, checkOf(token))
		if (err == nil) != (token == genuine) {
			t.Fatalf("%q gives %+v, %v, want no error only for %q", token, p, err, genuine)
		}
		if err != nil {
			wantOAuth(t, "CheckAccessToken", err, ErrUnauthenticated, OAuthInvalidToken)
		}
	})
}

func FuzzClientRegistration(f *testing.F) {
	for _, request := range []string{
		`{"redirect_uris":["https://app.example/cb"]}`,
		`{"redirect_uris":["cursor://x/y"],"client_name":"x","scope":"memory:read x","grant_types":["authorization_code"],` +
			`"x":{"y":[1,1e400,null]}}`,
		`{"redirect_uris":["http://localhost/"],"token_endpoint_auth_method":"none","redirect_uris":[]}`,
		`{"redirect_uris":null}`, `[]`, `{"":1}`, `{"client_name":"\u202e","redirect_uris":["https://a.example"]}`, `{"x":"` +
			strings.Repeat("x", 20_000) + `"}`,
	} {
		f.Add([]byte(request))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		var r ClientRegistration
		if json.Unmarshal(request, &r) != nil {
			return
		}
		checked, err := r.checked(ClientRegistered)
		if err != nil {
			mustBeRefusal(t, err)
			var cause *OAuthError
			if !errors.As(err, &cause) || fault.OAuthDescription(cause.Description) != cause.Description {
				t.Fatalf("%s is refused with %v, want a description of allowed characters", request, err)
			}
			return
		}
		encoded, err := json.Marshal(checked)
		if err != nil || len(encoded) > clientmeta.MaxBytes {
			t.Fatalf("%s becomes %d bytes, %v; want at most %v", request, len(encoded), err, clientmeta.MaxBytes)
		}
		var again ClientRegistration
		if err := json.Unmarshal(encoded, &again); err != nil {
			t.Fatal(err)
		}
		if again, err = again.checked(ClientRegistered); err != nil {
			t.Fatalf("%s is refused the second time: %v", encoded, err)
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(twice, encoded) {
			t.Fatalf("got %s, %v, want no error and %s", twice, err, encoded)
		}
	})
}

func BenchmarkCheckAccessToken(b *testing.B) {
	s, _ := openOAuth(b)
	tokens, _ := mustLetIn(b, s, s, mustRegister(b, s))
	check := checkOf(tokens.AccessToken)
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		if _, err := s.Accounts().CheckAccessToken(context.Background(), check); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e6, "ms-median")
}

func BenchmarkRefresh(b *testing.B) {
	s, _ := openOAuth(b)
	const goroutines = 8
	c := mustRegister(b, s)
	refreshes := make(chan TokenRefresh, goroutines)
	for range goroutines {
		_, r := mustLetIn(b, s, s, c)
		refreshes <- r
	}
	work := make(chan struct{})
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			for range work {
				r := <-refreshes
				next, err := s.Accounts().RefreshTokens(context.Background(), r)
				if err != nil {
					b.Error(err)
				}
				r.RefreshToken = next.RefreshToken
				refreshes <- r
			}
		})
	}
	start, n := time.Now(), 0
	for ; b.Loop(); n++ {
		work <- struct{}{}
	}
	close(work)
	group.Wait()
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), "refreshes/s")
}

func TestRefusedScopesAreRemembered(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "refused.db"), Options{})
	c := mustRegister(t, s)
	for _, g := range []struct{ scopes, refused, kept []Scope }{
		{[]Scope{ScopeMemoryRead}, nil, nil},
		{[]Scope{ScopeMemoryRead}, []Scope{ScopeMemoryRead}, nil},
		{[]Scope{ScopeMemoryRead}, []Scope{ScopeFilesWrite, ScopeMemoryRead, ScopeMemoryWrite},
			[]Scope{ScopeMemoryWrite, ScopeFilesWrite}},
	} {
		code, err := s.Accounts().Authorize(t.Context(),
			Authorization{ClientID: c.ID, RedirectURI: testCallback, Scopes: g.scopes, Refused: g.refused})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Accounts().ExchangeCode(t.Context(),
			CodeExchange{Client: ClientCredentials{ID: c.ID, Secret: c.Secret}, Code: code.Code, RedirectURI: testCallback,
				Issuer: "https://x", Audience: "https://x"}); err != nil {
			t.Fatal(err)
		}
		grants, err := s.Accounts().Grants(t.Context())
		if err != nil || !slices.Equal(grants[0].Refused, g.kept) || !slices.Equal(grants[0].Scopes, g.scopes) {
			t.Errorf("of %v became %+v (%v), want no error, refused %v and scopes %v", g, grants[0], err, g.kept, g.scopes)
		}
	}
	_, err := s.Accounts().Authorize(t.Context(),
		Authorization{ClientID: c.ID, RedirectURI: testCallback, Scopes: []Scope{ScopeMemoryRead},
			Refused: []Scope{"everything"}})
	wantOAuth(t, "Authorize", err, ErrInvalid, OAuthInvalidScope)
}

// signingKeyOf returns a key, as a thief would have it.
func signingKeyOf(t *testing.T, s *Store, id string) (key accesstoken.Key) {
	t.Helper()
	err := s.db.Read(t.Context(), func(tx db.Tx) (err error) {
		key, _, err = s.oauth.keys.Find(tx, id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// rerun is a database that runs the function of each Write twice: what the first run does is undone.
type rerun struct{ db.DB }

func (d rerun) Write(ctx context.Context, fn func(db.Tx) error) error {
	undone := errors.New("undone")
	err := d.DB.Write(ctx, func(tx db.Tx) error { return cmp.Or(fn(tx), undone) })
	if !errors.Is(err, undone) {
		return err
	}
	return d.DB.Write(ctx, fn)
}

func TestAWriteThatRunsAgainPurgesClients(t *testing.T) {
	s, passed := openOAuth(t)
	s.worker.Stop() // it reads s.db.DB
	s.db.DB = rerun{s.db.DB}
	unused := mustRegister(t, s)
	passed.Store(int64(25 * time.Hour))
	mustRegister(t, s)
	if c, err := s.Accounts().GetClient(t.Context(), unused.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unused client after a day: got %s, %v; want ErrNotFound", c.ID, err)
	}
}
