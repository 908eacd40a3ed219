package systemtest

import (
	"errors"
	"slices"
	"strings"
	"time"

	. "github.com/souvenir-ai/souvenir"
)

// oauthVisits: the operator manages the store's OAuth, users manage their own clients and grants, and a view that is
// limited to projects manages neither.
var oauthVisits = map[string]func(v visit){
	"RegisterClient": func(v visit) {
		v.operatorOnly(func(s *Store) error {
			_, err := s.Accounts().RegisterClient(v.Context(), ClientRegistration{RedirectURIs: []string{testCallback}})
			return err
		})
	},
	"PutDocumentClient": func(v visit) {
		v.operatorOnly(func(s *Store) error {
			_, err := s.Accounts().PutDocumentClient(v.Context(),
				DocumentClient{URL: "https://app.example/x",
					Registration: ClientRegistration{ClientName: "x", RedirectURIs: []string{testCallback}}})
			return err
		})
	},
	"GetClient": func(v visit) {
		apps := v.connect()
		v.operatorOnly(func(s *Store) error {
			_, err := s.Accounts().GetClient(v.Context(), apps["alice"].client.ID)
			return err
		})
	},
	"CheckClient": func(v visit) {
		apps := v.connect()
		v.operatorOnly(func(s *Store) error {
			_, err := s.Accounts().CheckClient(v.Context(),
				ClientCredentials{ID: apps["alice"].client.ID, Secret: apps["alice"].client.Secret})
			return err
		})
	},
	"CheckAuthorization": func(v visit) {
		apps := v.connect()
		v.operatorOnly(func(s *Store) error {
			_, err := s.Accounts().CheckAuthorization(v.Context(), apps["alice"].asks())
			return err
		})
	},
	"ExchangeCode": func(v visit) {
		x := mustAuthorize(v.T, v.n.store.As(Access{User: "alice"}), v.connect()["alice"].client)
		v.operatorOnly(func(s *Store) error { _, err := s.Accounts().ExchangeCode(v.Context(), x); return err })
	},
	"RefreshTokens": func(v visit) {
		apps := v.connect()
		v.operatorOnly(func(s *Store) error {
			_, err := s.Accounts().RefreshTokens(v.Context(), apps["alice"].refresh)
			return err
		})
	},
	"RevokeGrantByToken": func(v visit) {
		apps := v.connect()
		v.operatorOnly(func(s *Store) error {
			return s.Accounts().RevokeGrantByToken(v.Context(),
				Revocation{Client: apps["alice"].refresh.Client, Token: apps["alice"].refresh.RefreshToken})
		})
	},
	"CheckAccessToken": func(v visit) {
		apps := v.connect()
		v.operatorOnly(func(s *Store) error {
			_, err := s.Accounts().CheckAccessToken(v.Context(), checkOf(apps["alice"].tokens.AccessToken))
			return err
		})
	},
	"SigningKeys": func(v visit) {
		v.operatorOnly(func(s *Store) error { _, err := s.Accounts().SigningKeys(v.Context()); return err })
	},
	"GetSealingKey": func(v visit) {
		v.operatorOnly(func(s *Store) error { _, err := s.Accounts().GetSealingKey(v.Context()); return err })
	},
	"UpdateSharedValues": func(v visit) {
		v.operatorOnly(func(s *Store) error {
			return s.Accounts().UpdateSharedValues(v.Context(), SharedValuesUpdate{Keys: []string{"k"}, Life: time.Hour,
				Change: func(values [][]byte) { values[0] = []byte("x") }})
		})
	},
	"RotateSigningKey": func(v visit) {
		v.operatorOnly(func(s *Store) error { _, err := s.Accounts().RotateSigningKey(v.Context()); return err })
	},
	"AddClient": func(v visit) {
		apps := v.connect()
		before := rowsOf(v.T, v.n.store)
		added, err := v.view.Accounts().AddClient(v.Context(), NewClient{RedirectURIs: []string{testCallback}})
		if v.mayNot("AddClient", err, before) {
			return
		}
		if err != nil || added.Owner != v.access.User {
			v.Errorf("AddClient gives %+v, %v; want owner %v", added, err, v.access.User)
		}
		_, err = v.view.Accounts().AddClient(v.Context(),
			NewClient{ID: apps["alice"].client.ID, RedirectURIs: []string{testCallback}})
		if !errors.Is(err, ErrConflict) ||
			strings.Contains(strings.ReplaceAll(err.Error(), apps["alice"].client.ID, ""), "alice") {
			v.Errorf(`AddClient with the id of another gives %v, want ErrConflict and no "alice" in it`, err)
		}
	},
	"Clients": func(v visit) {
		apps := v.connect("carol", "eve")
		all, err := v.view.Accounts().Clients(v.Context())
		if v.access.Projects != nil {
			if !errors.Is(err, ErrForbidden) {
				v.Errorf("Clients through a limited view gives %v, want ErrForbidden", err)
			}
			return
		}
		var ids []string
		for _, c := range all {
			ids = append(ids, c.ID)
		}
		if app, has := apps[v.access.User]; err != nil || has && !slices.Equal(ids, []string{app.client.ID}) || !has &&
			len(ids) > 0 {
			v.Errorf("Clients gives %v, %v, want the visitor's own", ids, err)
		}
	},
	"RegenerateClientSecret": func(v visit) {
		v.onEachApp("RegenerateClientSecret", "client-nobodys", func(app connected) string { return app.client.ID },
			func(s *Store, id string) error {
				_, err := s.Accounts().RegenerateClientSecret(v.Context(), id)
				return err
			})
	},
	"DeactivateClient": func(v visit) {
		v.onEachApp("DeactivateClient", "client-nobodys", func(app connected) string { return app.client.ID },
			func(s *Store, id string) error {
				return s.Accounts().DeactivateClient(v.Context(), id)
			})
	},
	"RevokeGrant": func(v visit) {
		v.onEachApp("RevokeGrant", "grant-nobodys", func(app connected) string { return app.grant },
			func(s *Store, id string) error {
				return s.Accounts().RevokeGrant(v.Context(), id)
			})
	},
	"UpdateGrant": func(v visit) {
		v.onEachApp("UpdateGrant", "grant-nobodys", func(app connected) string { return app.grant },
			func(s *Store, id string) error {
				_, err := s.Accounts().UpdateGrant(v.Context(), id, GrantUpdate{Paused: new(true)})
				return err
			})
	},
	"Grants": func(v visit) {
		apps := v.connect("carol", "eve")
		all, err := v.view.Accounts().Grants(v.Context())
		if v.access.Projects != nil {
			if !errors.Is(err, ErrForbidden) {
				v.Errorf("Grants through a limited view gives %v, want ErrForbidden", err)
			}
			return
		}
		app, has := apps[v.access.User]
		if err != nil || has && (len(all) != 1 || all[0].ID != app.grant) || !has && len(all) > 0 {
			v.Errorf("Grants gives %+v, %v, want the visitor's own", all, err)
		}
		v.check("Grants", all, err)
	},
	"Authorize": func(v visit) { // for any client, but for own projects only
		apps := v.connect()
		before := rowsOf(v.T, v.n.store)
		_, err := v.view.Accounts().Authorize(v.Context(), apps["alice"].asks())
		if v.mayNot("Authorize", err, before) {
			return
		}
		if err != nil {
			v.Errorf("Authorize: %v", err)
		}
		a := apps["alice"].asks()
		a.Projects = []string{"secretplan"}
		_, err = v.view.Accounts().Authorize(v.Context(), a)
		if alice := v.access.User == "alice"; alice != (err == nil) || !alice && !errors.Is(err, ErrNotFound) {
			v.Errorf("Authorize for the project of alice gives %v, want ErrNotFound except for alice", err)
		}
		v.check("Authorize", nil, err, "secretplan")
	},
}

// connected is an application that a user added and allowed.
type connected struct {
	client  RegisteredClient
	grant   string
	tokens  TokenSet
	refresh TokenRefresh
}

func (c connected) asks() Authorization {
	return Authorization{ClientID: c.client.ID, RedirectURI: testCallback, Scopes: []Scope{ScopeMemoryWrite}}
}

// connect adds an application for alice, and for some more users.
func (v visit) connect(more ...string) map[string]connected {
	v.Helper()
	apps := map[string]connected{}
	for _, user := range append(more, "alice") {
		view := v.n.store.As(Access{User: user})
		var app connected
		var err error
		if app.client, err = view.Accounts().AddClient(v.Context(),
			NewClient{ID: "client-" + user, Name: "app of " + user, RedirectURIs: []string{testCallback}}); err != nil {
			v.Fatal(err)
		}
		app.tokens, app.refresh = mustLetIn(v.T, v.n.store, view, app.client)
		grants, err := view.Accounts().Grants(v.Context())
		if err != nil || len(grants) != 1 {
			v.Fatalf("got %v %v, want no error and 1 grant", grants, err)
		}
		app.grant = grants[0].ID
		apps[user] = app
	}
	return apps
}

// operatorOnly checks that the operator may call a method, and a view may not.
func (v visit) operatorOnly(call func(*Store) error) {
	v.Helper()
	before := rowsOf(v.T, v.n.store)
	if err := call(v.view); !errors.Is(err, ErrForbidden) {
		v.Errorf("a view gets %v, want ErrForbidden", err)
	}
	if rowsOf(v.T, v.n.store) != before {
		v.Error("it was refused and changed something, want no change")
	}
	if err := call(v.n.store); err != nil {
		v.Errorf("the operator gets %v", err)
	}
}

// mayNot checks that limited and read-only views are refused, and reports whether this is one.
func (v visit) mayNot(what string, err error, before string) bool {
	v.Helper()
	switch {
	case v.access.Projects != nil:
		if !errors.Is(err, ErrForbidden) {
			v.Errorf("%s through a limited view gives %v, want ErrForbidden", what, err)
		}
	case v.access.ReadOnly:
		if !errors.Is(err, ErrReadOnly) {
			v.Errorf("%s through a read-only view gives %v, want ErrReadOnly", what, err)
		}
	default:
		return false
	}
	if rowsOf(v.T, v.n.store) != before {
		v.Errorf("%s was refused and changed something, want no change", what)
	}
	return true
}

// onEachApp changes the applications of all users. It succeeds for the visitor's own. The others get the same error as
// a missing one.
func (v visit) onEachApp(what, nobodys string, idOf func(connected) string, call func(s *Store, id string) error) {
	v.Helper()
	for user, app := range v.connect("carol", "eve") {
		before, id := rowsOf(v.T, v.n.store), idOf(app)
		err := call(v.view, id)
		v.check(what, nil, err)
		if v.mayNot(what, err, before) {
			continue
		}
		if user == v.access.User {
			if err != nil {
				v.Errorf("%s of what is one's own: %v", what, err)
			}
			continue
		}
		unknown := call(v.view, nobodys)
		if !errors.Is(err, ErrNotFound) || strings.ReplaceAll(err.Error(), id, nobodys) != unknown.Error() {
			v.Errorf("%s of another's gives %v; of what does not exist, %v; want the same", what, err, unknown)
		}
		if rowsOf(v.T, v.n.store) != before {
			v.Errorf("%s of another's was refused and changed something, want no change", what)
		}
	}
}
