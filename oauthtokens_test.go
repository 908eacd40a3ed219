package souvenir

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Thieves, clocks, damage and races against the authorization server.

// A limit that cannot be read must not become unlimited access.
func TestDamagedGrantsGiveErrorsAndNoAccess(t *testing.T) {
	s, _ := openOAuth(t)
	tokens, refresh := mustLetIn(t, s, s, mustRegister(t, s))
	for _, projects := range []string{"null", "", "{}", `"p"`, "[1]", `["p"`} {
		mustExec(t, s, `UPDATE oauth_grant SET projects = ?`, projects)
		p, err := s.Accounts().CheckAccessToken(t.Context(), checkOf(tokens.AccessToken))
		if !errors.Is(err, ErrCorrupt) || p.User.ID != "" || p.Access.User != "" {
			t.Errorf("projects %q give %+v, %v, want ErrCorrupt, no ID and no user", projects, p, err)
		}
		if _, err := s.Accounts().RefreshTokens(t.Context(), refresh); !errors.Is(err, ErrCorrupt) {
			t.Errorf("RefreshTokens with projects %q gives %v, want ErrCorrupt", projects, err)
		}
	}
	mustExec(t, s, `UPDATE oauth_grant SET projects = '[]'`)
	if p, err := s.Accounts().CheckAccessToken(t.Context(), checkOf(tokens.AccessToken)); err != nil ||
		p.Access.Projects == nil || len(p.Access.Projects) > 0 {
		t.Errorf("no project at all gives %+v, %v, want no error and an empty list of projects that is not nil", p, err)
	}
}

// A thief of a replaced key can date a token back to when the key signed.
func TestBackdatedTokensDoNotOutliveTheirKey(t *testing.T) {
	s, passed := openOAuth(t)
	tokens, _ := mustLetIn(t, s, s, mustRegister(t, s))
	claims, id, err := s.readAccessToken(t.Context(), tokens.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	known := signingKeyOf(t, s, id)
	at := s.clock()
	passed.Add(int64(time.Minute))
	if _, err := s.Accounts().RotateSigningKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	claims.ExpiresAt.Time = at.AddDate(100, 0, 0)
	forged, err := claims.Sign(known)
	if err != nil {
		t.Fatal(err)
	}
	for _, wait := range []time.Duration{0, time.Hour, 24 * time.Hour} {
		passed.Add(int64(wait))
		_, err := s.Accounts().CheckAccessToken(t.Context(), checkOf(forged))
		wantOAuth(t, fmt.Sprint("after ", wait, " more, a token for a hundred years"), err, ErrUnauthenticated,
			OAuthInvalidToken)
	}
}

// Not even a stolen signing key gives more access than a user has granted.
func TestTokensNeverExceedTheirGrant(t *testing.T) {
	s, _ := openOAuth(t)
	tokens, _ := mustLetIn(t, s, s, mustRegister(t, s))
	mustExec(t, s, `UPDATE users SET role = 'admin'`)
	claims, id, err := s.readAccessToken(t.Context(), tokens.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	known := signingKeyOf(t, s, id)
	token, err := issued{key: known, issuer: testIssuer, audience: testResource,
		user: claims.UserID, client: claims.ClientID, grant: claims.GrantID, tokenID: "x", scopes: Scopes(),
		at: s.clock()}.sign()
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Accounts().CheckAccessToken(t.Context(), checkOf(token))
	if want := []Scope{ScopeMemoryRead, ScopeMemoryWrite}; err != nil || !slices.Equal(p.Scopes, want) {
		t.Errorf("memory:write was granted; the token gives %v, %v; want %v", p.Scopes, err, want)
	}
}

// Reuse of a refresh token that was used long ago counts as theft, even if the clock was set back in between.
func TestAClockThatIsSetBackDoesNotMakeAUsedRefreshTokenFresh(t *testing.T) {
	for back, theft := range map[time.Duration]bool{30 * time.Second: false, 2 * time.Minute: true, 24 * time.Hour: true} {
		s, passed := openOAuth(t)
		first, refresh := mustLetIn(t, s, s, mustRegister(t, s))
		if _, err := s.Accounts().RefreshTokens(t.Context(), refresh); err != nil {
			t.Fatal(err)
		}
		passed.Store(-int64(back))
		_, err := s.Accounts().RefreshTokens(t.Context(), refresh)
		if !theft {
			if err != nil {
				t.Errorf("%v back: %v", back, err)
			}
			continue
		}
		wantOAuth(t, fmt.Sprint("reuse with the clock set back by ", back), err, ErrInvalid, OAuthInvalidGrant)
		passed.Store(0)
		_, err = s.Accounts().CheckAccessToken(t.Context(), checkOf(first.AccessToken))
		wantOAuth(t, "an access token after it", err, ErrUnauthenticated, OAuthInvalidToken)
	}
}

func TestInvisibleClientNamesAreRefused(t *testing.T) {
	s, _ := openOAuth(t)
	for _, name := range []string{"\u200b", "\u2060\u200d", "\u3164", "\ufe0f", "\u00ad \u200b", "\U000e0041\U000e0042"} {
		_, err := s.Accounts().RegisterClient(t.Context(),
			ClientRegistration{RedirectURIs: []string{testCallback}, ClientName: name})
		wantOAuth(t, fmt.Sprintf("the name %+q", name), err, ErrInvalid, OAuthInvalidClientMetadata)
	}
	for _, name := range []string{"👩\u200d🚀", "❤\ufe0f", "می\u200cخواهم",
		"Äpp"} { // with joiners and selectors in valid places
		if _, err := s.Accounts().RegisterClient(t.Context(),
			ClientRegistration{RedirectURIs: []string{testCallback}, ClientName: name}); err != nil {
			t.Errorf("the name %+q: %v", name, err)
		}
	}
}

func TestDeepMetadataIsRefused(t *testing.T) {
	s, _ := openOAuth(t)
	for levels, kind := range map[int]*Error{valid.MaxDepth: nil, valid.MaxDepth + 1: ErrTooLarge, 5000: ErrTooLarge} {
		_, err := s.Accounts().RegisterClient(t.Context(),
			ClientRegistration{RedirectURIs: []string{testCallback}, Extra: deep(levels)})
		if kind == nil {
			if err != nil {
				t.Errorf("%d levels: %v", levels, err)
			}
			continue
		}
		wantOAuth(t, fmt.Sprint(levels, " levels"), err, kind, OAuthInvalidClientMetadata)
	}
	var r ClientRegistration
	bomb := `{"redirect_uris": ["` + testCallback + `"], "x": ` + strings.Repeat("[", 100_000) +
		strings.Repeat("]", 100_000) + `}`
	if err := json.Unmarshal([]byte(bomb), &r); err == nil {
		t.Error("100,000 levels are read, want an error")
	}
}

// Clients that were authorized once must not keep out new ones for ever.
func TestClientsWithoutAGrantMakeRoom(t *testing.T) {
	s, passed := openOAuth(t)
	s.oauth.clients = longtest.Size(maxClients, 2000)
	inUse := mustRegister(t, s)
	_, refresh := mustLetIn(t, s, s, inUse)
	barred, err := s.Accounts().PutDocumentClient(t.Context(),
		DocumentClient{URL: "https://app.example/barred",
			Registration: ClientRegistration{ClientName: "App", RedirectURIs: []string{testCallback}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Accounts().DeactivateClient(t.Context(), barred.ID); err != nil {
		t.Fatal(err)
	}
	own, err := s.Accounts().AddClient(t.Context(), NewClient{ID: "own", RedirectURIs: []string{testCallback}})
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, s, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO oauth_client (client_id, kind, name, auth_method, redirect_uris, metadata, created_at, updated_at,
		used_at, disabled_at)
		SELECT 'x' || i, 'registered', '', 'none', '[]', '{}', ?2, ?2, ?2, iif(i % 2, ?2, NULL) FROM n`, s.oauth.clients-2,
		s.now())
	_, err = s.Accounts().RegisterClient(t.Context(), ClientRegistration{RedirectURIs: []string{testCallback}})
	wantOAuth(t, "on the day on which they came, RegisterClient", err, ErrTooLarge, OAuthUnavailable)
	passed.Store(int64(25 * time.Hour))
	added := mustRegister(t, s)
	all, err := s.Accounts().Clients(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, c := range all {
		left = append(left, c.ID)
	}
	want := []string{inUse.ID, barred.ID, own.ID, added.ID}
	slices.Sort(left)
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left are %.200v, want %v", left, want)
	}
	if _, err := s.Accounts().RefreshTokens(t.Context(), refresh); err != nil {
		t.Errorf("the client in use: %v", err)
	}
}
