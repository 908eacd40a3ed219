package storetest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func parents() concept {
	return concept{"Parents", []promise{
		{"credentials created with a credential end with it, through any number of others", parentsEnd},
		{"credentials created with a credential have at most its rights", parentsLimit},
		{"signing out leaves what a person made, and takes what was to end with it", parentsSignOut},
		{"a new sign-in in the same browser takes over what was made in the old one", parentsReplaced},
		{"a client ends with the credential that made it", parentsClients},
		{"a parent is one of the same user, and in force", parentsArguments},
		{"a changed password ends the other kinds of access named", parentsPassword},
		{"a sign-in remembers when its person last showed who they are", signInsConfirmed},
	}}
}

// family is a credential of ann's with the tokens made through it.
type family struct {
	*fixture
	ann    souvenir.User
	view   *fixture
	parent souvenir.NewToken // names the credential
	end    map[string]func()
}

// made adds three tokens: one through the parent of a family, and each of the others through the one before.
func (f family) made() []souvenir.AddedToken {
	f.Helper()
	n := f.parent
	var all []souvenir.AddedToken
	for generation := range 3 {
		n.Name = fmt.Sprintf("generation %d", generation)
		added := f.view.addToken(n)
		all = append(all, added)
		n = souvenir.NewToken{TokenID: added.ID}
	}
	return all
}

// families returns the kinds of parents, each with the ways in which it can end.
func (f *fixture) families() map[string]func() family {
	user := func() (souvenir.User, *fixture) {
		name := fmt.Sprintf("ann%d", f.clock.Now().UnixNano())
		f.clock.Pass(time.Second)
		u := f.addUser(souvenir.NewUser{Name: name, Password: password})
		return u, f.as(souvenir.Access{User: u.ID})
	}
	return map[string]func() family{
		"a token": func() family {
			u, view := user()
			parent := view.addToken(souvenir.NewToken{Name: "parent", ExpiresIn: time.Hour})
			fm := family{f, u, view, souvenir.NewToken{TokenID: parent.ID}, map[string]func(){
				"it is deleted": func() { f.check("RevokeToken", view.store.Accounts().RevokeToken(f.ctx, parent.ID)) },
				"it expires":    func() { f.clock.Pass(time.Hour) },
			}}
			f.addUserEnds(fm)
			return fm
		},
		"an application": func() family {
			u, view := user()
			client := f.register(souvenir.AuthNone)
			grant := f.works("the application", view.obtainTokens(client)).GrantID
			fm := family{f, u, view, souvenir.NewToken{GrantID: grant}, map[string]func(){
				"it is disconnected": func() { f.check("RevokeGrant", view.store.Accounts().RevokeGrant(f.ctx, grant)) },
				"its client is deactivated": func() {
					f.check("DeactivateClient",
						f.operator.Accounts().DeactivateClient(f.ctx, client.ID))
				},
				"all applications end": func() {
					f.check("RevokeAccess", view.store.Accounts().RevokeAccess(f.ctx,
						"", []souvenir.AccessKind{souvenir.AccessGrants}))
				},
			}}
			f.addUserEnds(fm)
			return fm
		},
		"a session": func() family {
			u, view := user()
			session := f.addSignIn(souvenir.NewSignIn{User: u.ID, UserAgent: "Lynx"})
			fm := family{f, u, view, souvenir.NewToken{SignInID: session.ID}, map[string]func(){
				"it is ended from elsewhere": func() {
					f.check("RevokeSignIn",
						view.store.Accounts().RevokeSignIn(f.ctx, session.ID, nil))
				},
				"all are ended": func() {
					f.check("RevokeSignIns", view.store.Accounts().RevokeSignIns(f.ctx, "", nil))
				},
			}}
			f.addUserEnds(fm)
			return fm
		},
		"a session, with it": func() family {
			u, view := user()
			session := f.addSignIn(souvenir.NewSignIn{User: u.ID})
			fm := family{f, u, view, souvenir.NewToken{SignInID: session.ID, WithSignIn: true}, map[string]func(){
				"it is ended from elsewhere": func() {
					f.check("RevokeSignIn",
						view.store.Accounts().RevokeSignIn(f.ctx, session.ID, nil))
				},
				"its person signs out": func() {
					f.check("RevokeSignIns",
						view.store.Accounts().RevokeSignIn(f.ctx, session.ID, &souvenir.SignOutOptions{KeepMade: true}))
				},
				"it expires":               func() { f.clock.Pass(15 * 24 * time.Hour) },
				"it expires and is purged": func() { f.clock.Pass(15 * 24 * time.Hour); f.purge() },
				"the password is changed": func() {
					f.check("ChangePassword",
						view.store.Accounts().ChangePassword(f.ctx, souvenir.PasswordChange{Old: password, New: "quite another"}))
				},
			}}
			f.addUserEnds(fm)
			return fm
		},
	}
}

// addUserEnds adds the ends of a family that its user brings about, whatever the parent is.
func (f *fixture) addUserEnds(fm family) {
	fm.end["the user is disabled"] = func() { f.updateUser(fm.ann.ID, souvenir.UserUpdate{Disabled: pointer(true)}) }
	fm.end["the user is deleted"] = func() {
		f.check("DeleteUser", f.store.Accounts().DeleteUser(f.ctx, fm.ann.ID, nil))
	}
	fm.end["all tokens end"] = func() {
		f.check("RevokeAccess", fm.view.store.Accounts().RevokeAccess(f.ctx,
			"", []souvenir.AccessKind{souvenir.AccessTokens}))
	}
}

func (f *fixture) purge() {
	f.Helper()
	_, err := f.operator.Upkeep().Purge(f.ctx, &souvenir.PurgeOptions{TrustClock: true})
	f.check("Purge", err)
}

func parentsEnd(f *fixture) {
	families := f.families()
	for i, kind := range slices.Sorted(maps.Keys(families)) {
		build := families[kind]
		for k, how := range slices.Sorted(maps.Keys(build().end)) {
			if !longtest.Part(i+k, 1, 3) {
				continue
			}
			fm := build()
			own := fm.view.addToken(souvenir.NewToken{Name: "own"}) // without a user
			made := fm.made()
			for _, token := range made {
				f.principal(token.Value)
			}
			fm.end[how]()
			for _, token := range made {
				f.tokenFails(fmt.Sprintf("of %s, %s, when %s", token.Name, kind, how), token.Value)
			}
			if how == "the user is disabled" || how == "the user is deleted" || how == "all tokens end" {
				continue
			}
			f.principal(own.Value)
			for _, token := range made {
				_, err := fm.view.store.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "late", TokenID: token.ID})
				f.failsAt("AddToken through "+token.Name, err, souvenir.ErrNotFound, "token_id")
			}
		}
	}
}

func parentsLimit(f *fixture) {
	ann := f.as(souvenir.Access{User: f.addUser(souvenir.NewUser{Name: "ann"}).ID})
	ann.addProject(souvenir.NewProject{ID: "shop"})
	ann.addProject(souvenir.NewProject{ID: "plot"})
	parent := ann.addToken(souvenir.NewToken{Name: "parent",
		Scopes: []souvenir.Scope{souvenir.ScopeMemoryWrite, souvenir.ScopeAccount}, Projects: []string{"shop"},
		ExpiresIn: time.Hour})
	child := ann.addToken(souvenir.NewToken{Name: "child", TokenID: parent.ID})
	f.equal("what is left out", []any{child.Scopes, child.Projects, child.ExpiresAt},
		[]any{[]souvenir.Scope{souvenir.ScopeMemoryRead, souvenir.ScopeMemoryWrite}, parent.Projects, parent.ExpiresAt})
	f.equal("made through", []string{child.TokenID, child.TokenName}, []string{parent.ID, "parent"})
	f.equal("listed", ann.tokens()[0], child.Token)
	ann.addToken(souvenir.NewToken{Name: "as much", TokenID: parent.ID,
		Scopes: []souvenir.Scope{souvenir.ScopeAccount, souvenir.ScopeMemoryRead}, Projects: []string{"shop"},
		ExpiresIn: time.Hour})
	for argument, n := range map[string]souvenir.NewToken{
		"scopes":     {Scopes: []souvenir.Scope{souvenir.ScopeFilesRead}},
		"projects":   {Projects: []string{"shop", "plot"}},
		"expires_at": {ExpiresIn: time.Hour + time.Second},
	} {
		n.Name, n.TokenID = "more", parent.ID
		_, err := ann.store.Accounts().AddToken(f.ctx, n)
		f.failsAt("AddToken with more "+argument, err, souvenir.ErrForbidden, argument)
	}
	grant := f.works("the application", ann.obtainTokens(f.register(souvenir.AuthNone))).GrantID // memory:write files:read
	_, err := ann.store.Accounts().AddToken(f.ctx,
		souvenir.NewToken{Name: "more", GrantID: grant, Scopes: []souvenir.Scope{souvenir.ScopeAccount}})
	f.failsAt("AddToken with more than an application", err, souvenir.ErrForbidden, "scopes", "account")
}

func parentsSignOut(f *fixture) {
	ann := f.as(souvenir.Access{User: f.addUser(souvenir.NewUser{Name: "ann"}).ID})
	session := f.addSignIn(souvenir.NewSignIn{User: "ann", UserAgent: "Lynx"})
	lasting := ann.addToken(souvenir.NewToken{Name: "lasting", SignInID: session.ID})
	passing := ann.addToken(souvenir.NewToken{Name: "passing", SignInID: session.ID, WithSignIn: true})
	f.equal("made in", []any{lasting.SignInID, lasting.Browser, lasting.WithSignIn, passing.WithSignIn},
		[]any{session.ID, "Lynx", false, true})
	f.check("RevokeSignIns", ann.store.Accounts().RevokeSignIn(f.ctx,
		session.ID, &souvenir.SignOutOptions{KeepMade: true}))
	f.signedOut("who has signed out", session.Value)
	f.equal("the browser is still known", f.principal(lasting.Value).TokenID, lasting.ID)
	f.equal("listed", ann.tokens()[0].Browser, "Lynx")
	f.tokenFails("that ends with the session", passing.Value)
	f.equal("only one is listed", len(ann.tokens()), 1)

	old := f.addSignIn(souvenir.NewSignIn{User: "ann"})
	expiring := ann.addToken(souvenir.NewToken{Name: "expiring", SignInID: old.ID})
	f.clock.Pass(15 * 24 * time.Hour)
	f.purge()
	f.principal(expiring.Value)
	f.principal(lasting.Value)
}

func parentsReplaced(f *fixture) {
	ann := f.as(souvenir.Access{User: f.addUser(souvenir.NewUser{Name: "ann"}).ID})
	bens := f.addSignIn(souvenir.NewSignIn{User: f.addUser(souvenir.NewUser{Name: "ben"}).ID})
	old := f.addSignIn(souvenir.NewSignIn{User: "ann"})
	token := ann.addToken(souvenir.NewToken{Name: "x", SignInID: old.ID, WithSignIn: true})
	fresh := f.addSignIn(souvenir.NewSignIn{User: "ann", Replaces: old.ID})
	f.signedOut("that was replaced", old.Value)
	f.principal(token.Value)
	f.addSignIn(souvenir.NewSignIn{User: "ann", Replaces: bens.ID})
	f.signedIn(bens)
	f.check("RevokeSignIn", ann.store.Accounts().RevokeSignIn(f.ctx, fresh.ID, nil))
	f.tokenFails("of the session that took over", token.Value)
}

func parentsClients(f *fixture) {
	ann := f.as(souvenir.Access{User: f.addUser(souvenir.NewUser{Name: "ann"}).ID})
	token := ann.addToken(souvenir.NewToken{Name: "x"})
	grant := f.works("the application", ann.obtainTokens(f.register(souvenir.AuthNone))).GrantID
	soon := ann.addToken(souvenir.NewToken{Name: "soon", ExpiresIn: time.Hour})
	own := ann.addClient(souvenir.NewClient{Name: "Own"})
	ofToken := ann.addClient(souvenir.NewClient{Name: "Of the token", TokenID: token.ID})
	ofGrant := ann.addClient(souvenir.NewClient{Name: "Of the application", GrantID: grant})
	ofSoon := ann.addClient(souvenir.NewClient{Name: "Of the one that ends", TokenID: soon.ID})
	f.equal("made", []bool{own.Made, ofToken.Made, ofGrant.Made}, []bool{false, true, true})
	active := func(what string, want ...string) {
		f.Helper()
		clients, err := ann.store.Accounts().Clients(f.ctx)
		f.check("Clients", err)
		var names []string
		for _, c := range clients {
			if c.Active {
				names = append(names, c.Metadata.ClientName)
			}
		}
		same(f, what, names, want)
	}
	active("at first", "Of the application", "Of the one that ends", "Of the token", "Own")
	f.check("RevokeToken", ann.store.Accounts().RevokeToken(f.ctx, token.ID))
	active("without the token", "Of the application", "Of the one that ends", "Own")
	f.check("RevokeGrant", ann.store.Accounts().RevokeGrant(f.ctx, grant))
	active("without the application", "Of the one that ends", "Own")
	f.clock.Pass(time.Hour)
	f.purge()
	active("when a token has expired", "Own")
	for _, id := range []string{ofToken.ID, ofGrant.ID, ofSoon.ID} {
		_, err := f.operator.Accounts().CheckClient(f.ctx, souvenir.ClientCredentials{ID: id})
		f.failsAt("CheckClient "+id, err, souvenir.ErrUnauthenticated, "client_id")
	}
	_, err := ann.store.Accounts().AddClient(f.ctx,
		souvenir.NewClient{RedirectURIs: []string{callback}, TokenID: token.ID})
	f.failsAt("AddClient through a token that has ended", err, souvenir.ErrNotFound, "token_id")
	_, err = ann.store.Accounts().AddClient(f.ctx, souvenir.NewClient{RedirectURIs: []string{callback}, GrantID: grant})
	f.failsAt("AddClient through an application that has ended", err, souvenir.ErrNotFound, "grant_id")
}

func parentsArguments(f *fixture) {
	ann := f.as(souvenir.Access{User: f.addUser(souvenir.NewUser{Name: "ann"}).ID})
	f.addUser(souvenir.NewUser{Name: "ben"})
	bens := f.addToken(souvenir.NewToken{Name: "x", User: "ben"})
	hisSession := f.addSignIn(souvenir.NewSignIn{User: "ben"})
	expired := f.addSignIn(souvenir.NewSignIn{User: "ann"})
	f.clock.Pass(15 * 24 * time.Hour)
	for argument, n := range map[string][]souvenir.NewToken{
		"token_id":   {{TokenID: bens.ID}, {TokenID: "unknown"}},
		"session_id": {{SignInID: hisSession.ID}, {SignInID: "unknown"}, {SignInID: expired.ID}},
	} {
		for _, n := range n {
			n.Name = "x"
			_, err := ann.store.Accounts().AddToken(f.ctx, n)
			f.failsAt("AddToken with a parent that is not one's own", err, souvenir.ErrNotFound, argument)
		}
	}
	f.equal("made", len(ann.tokens()), 0)
}

func parentsPassword(f *fixture) {
	ann := f.as(souvenir.Access{User: f.addUser(souvenir.NewUser{Name: "ann", Password: password}).ID})
	token := ann.addToken(souvenir.NewToken{Name: "x"})
	app := ann.obtainTokens(f.register(souvenir.AuthNone))
	change := func(old, fresh string, end ...souvenir.AccessKind) error {
		return ann.store.Accounts().ChangePassword(f.ctx, souvenir.PasswordChange{Old: old, New: fresh, End: end})
	}
	f.failsAt("another kind", change(password, "quite another", "everything"), souvenir.ErrInvalid, "end", "everything")
	f.check("ChangePassword", change(password, "quite another"))
	f.principal(token.Value)
	f.works("the application", app)
	f.check("ChangePassword", change("quite another", password, souvenir.AccessTokens))
	f.tokenFails("after a changed password", token.Value)
	f.works("the application", app)
	f.check("ChangePassword", change(password, "quite another", souvenir.AccessGrants))
	grants, err := ann.store.Accounts().Grants(f.ctx)
	f.check("Grants", err)
	f.equal("applications", len(grants), 0)
}

func signInsConfirmed(f *fixture) {
	ann := f.as(souvenir.Access{User: f.addUser(souvenir.NewUser{Name: "ann"}).ID})
	f.addUser(souvenir.NewUser{Name: "ben"})
	session, other := f.addSignIn(souvenir.NewSignIn{User: "ann"}), f.addSignIn(souvenir.NewSignIn{User: "ben"})
	signedIn := f.clock.Now()
	f.clock.Pass(time.Hour)
	f.equal("at the sign-in", f.signedIn(session).ConfirmedAt, signedIn)
	f.check("ConfirmSignIn", ann.store.Accounts().ConfirmSignIn(f.ctx, session.ID))
	f.equal("confirmed", f.signedIn(session).ConfirmedAt, f.clock.Now())
	f.equal("listed", ann.signIns()[0].ConfirmedAt, f.clock.Now())
	for _, id := range []string{other.ID, "unknown"} {
		f.failsAt("ConfirmSignIn of "+id, ann.store.Accounts().ConfirmSignIn(f.ctx, id), souvenir.ErrNotFound, "id")
	}
	f.equal("another's", f.signedIn(other).ConfirmedAt, signedIn)
	for given, want := range map[time.Time]time.Time{{}: f.clock.Now(), signedIn: signedIn,
		f.clock.Now().Add(time.Hour): f.clock.Now()} {
		f.equal("shown at a provider",
			f.signedIn(f.addSignIn(souvenir.NewSignIn{User: "ann", Confirmed: given})).ConfirmedAt, want)
	}
}
