package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func signIns() concept {
	return concept{"Sessions", []promise{
		{"a sign-in carries all rights of its user", signInsChecked},
		{"a sign-in's value is returned once; lists have the rest", signInsListed},
		{"every invalid sign-in gets the same error", signInsRefused},
		{"a sign-in lasts while it is used, for 90 days", signInsLast},
		{"the last use is recorded to the minute", signInsUsed},
		{"a browser's name is stored in a form that can be shown", signInsBrowsers},
		{"a user ends all their sign-ins but one", signInsEnded},
		{"a new password ends all sign-ins but one", signInsPassword},
		{"disabling and deleting a user ends sign-ins for good", signInsDisabled},
		{"access on behalf of a user ends by kind", accessEnded},
		{"a password that an admin sets ends sign-ins and applications, and tokens if that is asked for",
			accessEndsWithPassword},
		{"a former admin loses admin rights", signInsAdmin},
		{"a sign-in that began before a change fails", signInsSince},
		{"past 100 sign-ins, the least recently used end", signInsMost},
		{"a read-only handle checks sign-ins", signInsReadOnly},
		{"sign-ins that have expired are purged", signInsPurged},
		{"a browser in which a user has signed in is recognized for a year", browsersKnown},
	}}
}

func (f *fixture) addSignIn(n souvenir.NewSignIn) souvenir.AddedSignIn {
	f.Helper()
	added, err := f.operator.Accounts().AddSignIn(f.ctx, n)
	f.check("AddSignIn of "+n.User, err)
	return added
}

func (f *fixture) signIns() []souvenir.SignIn {
	f.Helper()
	all, err := f.reader.Accounts().SignIns(f.ctx)
	f.check("Sessions", err)
	return all
}

// signedIn checks that a session is valid.
func (f *fixture) signedIn(s souvenir.AddedSignIn) souvenir.Principal {
	f.Helper()
	p, err := f.reader.Accounts().CheckSignIn(f.ctx, s.Value)
	f.check("CheckSignIn", err)
	f.equal("session", p.SignInID, s.ID)
	return p
}

func (f *fixture) signedOut(what, value string) {
	f.Helper()
	p, err := f.reader.Accounts().CheckSignIn(f.ctx, value)
	f.failsAt("CheckSignIn "+what, err, souvenir.ErrUnauthenticated, "")
	if err != nil && err.Error() != "the session is not valid; it may have expired or been revoked, so sign in again" ||
		p.User.ID != "" || p.Scopes != nil {
		f.Errorf("CheckSignIn %s says more than it may: %+v, %v, want one text for all", what, p, err)
	}
}

func signInsChecked(f *fixture) {
	ann, boss := f.addUser(souvenir.NewUser{Name: "ann"}),
		f.addUser(souvenir.NewUser{Name: "boss", Role: souvenir.RoleAdmin})
	for _, c := range []struct {
		user   souvenir.User
		by     string
		scopes []souvenir.Scope
	}{{ann, "Ann", souvenir.Scopes()[:5]}, {ann, ann.ID, souvenir.Scopes()[:5]}, {boss, "boss", souvenir.Scopes()}} {
		p := f.signedIn(f.addSignIn(souvenir.NewSignIn{User: c.by}))
		f.equal("principal", []any{p.User, p.Scopes, p.Access, p.TokenID, p.ClientID, p.GrantID},
			[]any{c.user, c.scopes, souvenir.Access{User: c.user.ID}, "", "", ""})
		f.equal("may manage", p.Allows(souvenir.ScopeAdmin), c.user == boss)
	}
	for by, kind := range map[string]*souvenir.Error{"noah": souvenir.ErrNotFound, "": souvenir.ErrNotFound,
		souvenir.LocalUser: souvenir.ErrConflict} {
		if by == souvenir.LocalUser {
			f.addTexts("there is such a user, without an account")
		}
		added, err := f.store.Accounts().AddSignIn(f.ctx, souvenir.NewSignIn{User: by})
		f.failsAt("AddSignIn of "+by, err, kind, "user")
		f.equal("beside an error", added, souvenir.AddedSignIn{})
	}
}

func signInsListed(f *fixture) {
	ann := f.addUser(souvenir.NewUser{Name: "ann"})
	hers := f.as(souvenir.Access{User: ann.ID})
	same(f, "none", hers.signIns(), nil)
	first := f.addSignIn(souvenir.NewSignIn{User: "ann", UserAgent: "Browser/1"})
	f.clock.Pass(time.Second)
	second := f.addSignIn(souvenir.NewSignIn{User: "ann"})
	for _, added := range []souvenir.AddedSignIn{first, second} {
		if len(added.Value) != 47 || !strings.HasPrefix(added.Value, "ses_") ||
			strings.Trim(added.Value[4:], "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			f.Errorf("the value %q is not as it should be, want ses_ and 43 characters of base64", added.Value)
		}
	}
	f.equal("listed", hers.signIns(), []souvenir.SignIn{second.SignIn, first.SignIn})
	f.equal("as JSON", toJSON(first.SignIn),
		fmt.Sprintf(`{"id":%q,"created_at":"2026-03-01T09:00:00Z","last_used_at":"2026-03-01T09:00:00Z",`+
			`"expires_at":"2026-03-15T09:00:00Z","user_agent":"Browser/1","confirmed_at":"2026-03-01T09:00:00Z"}`, first.ID))
	var listed map[string]any
	f.check("JSON", json.Unmarshal([]byte(toJSON(first)), &listed))
	f.equal("the value in JSON", listed["session"], any(first.Value))
	f.clock.Pass(14*24*time.Hour - time.Second)
	f.equal("without what has expired", hers.signIns(), []souvenir.SignIn{second.SignIn})
}

func signInsRefused(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "ann"})
	good := f.addSignIn(souvenir.NewSignIn{User: "ann"})
	token := f.addToken(souvenir.NewToken{User: "ann", Name: "x"})
	v := good.Value
	for what, value := range map[string]string{
		"that is empty": "", "that is a start": "ses_", "with another last letter": v[:46] + string(v[46]^1),
		"in capitals": strings.ToUpper(v), "cut off": v[:46], "with more": v + "x",
		"without its start": v[4:], "with a space": v + " ", "by pattern": "ses_" + strings.Repeat("_", 43),
		"that is SQL": "ses_' OR 1=1; --", "by id": good.ID, "with a zero byte": v[:46] + "\x00",
		"huge": "ses_" + strings.Repeat("a", 1<<20), "that is no UTF-8": "ses_" + strings.Repeat("\xff", 43),
		"that is a token": token.Value, "that would be a token": "ses_" + token.Value[4:],
	} {
		f.signedOut(what, value)
	}
	f.tokenFails("that is a session", v)
	f.tokenFails("that would be a session", "mcp_"+v[4:])
	f.signedIn(good)
}

const day = 24 * time.Hour

func signInsLast(f *fixture) {
	ann := f.addUser(souvenir.NewUser{Name: "ann"})
	hers := f.as(souvenir.Access{User: ann.ID})
	used, unused := f.addSignIn(souvenir.NewSignIn{User: "ann"}), f.addSignIn(souvenir.NewSignIn{User: "ann"})
	began := f.clock.Now()
	f.clock.Pass(13 * day)
	f.signedIn(used)
	f.equal("14 days from the use", hers.signIns()[1].ExpiresAt, began.Add(27*day))
	f.clock.Pass(day - time.Microsecond)
	f.signedIn(unused)
	f.clock.Pass(14*day - time.Microsecond)
	f.signedOut("that was not used for 14 days", used.Value) // 13 days and 14
	f.signedIn(unused)
	f.clock.Pass(14 * day)
	f.signedOut("that was not used for 14 days, either", unused.Value)

	long, began := f.addSignIn(souvenir.NewSignIn{User: "ann"}), f.clock.Now()
	for range 8 {
		f.clock.Pass(10 * day)
		f.signedIn(long)
	}
	f.equal("90 days from the sign-in", hers.signIns()[0].ExpiresAt, began.Add(90*day))
	f.clock.Pass(10*day - time.Microsecond)
	f.signedIn(long)
	f.clock.Pass(time.Microsecond)
	f.signedOut("of 90 days", long.Value)
}

func signInsUsed(f *fixture) {
	ann := f.addUser(souvenir.NewUser{Name: "ann"})
	hers := f.as(souvenir.Access{User: ann.ID})
	added := f.addSignIn(souvenir.NewSignIn{User: "ann"})
	for _, c := range []struct{ passes, noted time.Duration }{{59 * time.Second, 0}, {time.Second, time.Minute},
		{30 * time.Second, time.Minute}, {time.Hour, time.Hour + 90*time.Second}} {
		f.clock.Pass(c.passes)
		f.signedIn(added)
		f.equal("last used", hers.signIns()[0].LastUsedAt, added.CreatedAt.Add(c.noted))
		f.equal("until", hers.signIns()[0].ExpiresAt, added.CreatedAt.Add(c.noted+14*day))
	}
	f.clock.Pass(-2 * time.Hour)
	f.signedIn(added)
}

func signInsBrowsers(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "ann"})
	for given, want := range map[string]string{
		"": "", "Mozilla/5.0 (X11; Linux)": "Mozilla/5.0 (X11; Linux)", " a\t b\r\nc ": "a b c", "a\x00\x1b[31mb": "a[31mb",
		"a\u202eb\u200bc": "abc", "a\xffb": "ab", "<b>": "<b>",
		strings.Repeat("x", 300): strings.Repeat("x", 256), strings.Repeat("ä", 200): strings.Repeat("ä", 128), "x" +
			strings.Repeat("ä", 200): "x" + strings.Repeat("ä", 127),
		strings.Repeat("x", 255) + " y": strings.Repeat("x", 255), strings.Repeat("y", 1<<20): strings.Repeat("y", 256),
	} {
		f.equal("of "+brief(given), f.addSignIn(souvenir.NewSignIn{User: "ann", UserAgent: given}).UserAgent, want)
	}
}

func signInsEnded(f *fixture) {
	ann, ben := f.addUser(souvenir.NewUser{Name: "ann"}), f.addUser(souvenir.NewUser{Name: "ben"})
	hers, his := f.as(souvenir.Access{User: ann.ID}), f.as(souvenir.Access{User: ben.ID})
	var of [4]souvenir.AddedSignIn
	for i := range of {
		of[i] = f.addSignIn(souvenir.NewSignIn{User: "ann"})
	}
	bens := f.addSignIn(souvenir.NewSignIn{User: "ben"})
	f.check("RevokeSignIn", hers.store.Accounts().RevokeSignIn(f.ctx, of[0].ID, nil))
	f.signedOut("that has ended", of[0].Value)
	for _, id := range []string{of[0].ID, bens.ID, "", "nothing"} {
		f.failsAt("RevokeSignIn of "+id, hers.store.Accounts().RevokeSignIn(f.ctx, id, nil), souvenir.ErrNotFound, "id")
	}
	f.check("RevokeSignIns", hers.store.Accounts().RevokeSignIns(f.ctx, of[2].ID, nil))
	f.signedIn(of[2])
	f.signedOut("that has ended with others", of[1].Value)
	f.equal("left", hers.signIns(), []souvenir.SignIn{of[2].SignIn})
	f.check("RevokeSignIns", hers.store.Accounts().RevokeSignIns(f.ctx, bens.ID, nil))
	same(f, "with that of another excepted", hers.signIns(), nil)
	f.check("RevokeSignIns", hers.store.Accounts().RevokeSignIns(f.ctx, "", nil))
	f.signedIn(bens)
	f.equal("his", len(his.signIns()), 1)
}

func signInsPassword(f *fixture) {
	ann := f.addUser(souvenir.NewUser{Name: "ann", Password: password})
	hers := f.as(souvenir.Access{User: ann.ID})
	token := hers.addToken(souvenir.NewToken{Name: "x"})
	stays, ends := f.addSignIn(souvenir.NewSignIn{User: "ann"}), f.addSignIn(souvenir.NewSignIn{User: "ann"})
	change := func(old, fresh, keep string) error {
		return hers.store.Accounts().ChangePassword(f.ctx, souvenir.PasswordChange{Old: old, New: fresh, KeepSignIn: keep})
	}
	f.fails("with a wrong one", change("wrong "+password, "quite another", ""), souvenir.ErrUnauthenticated)
	f.signedIn(ends)
	f.check("ChangePassword", change(password, "quite another", stays.ID))
	f.signedIn(stays)
	f.signedOut("of the old password", ends.Value)
	f.updateUser("ann", souvenir.UserUpdate{Email: pointer("ann@example.com")})
	f.signedIn(stays)
	f.check("ChangePassword", change("quite another", password, ""))
	f.signedOut("after another change", stays.Value)
	for _, fresh := range []string{"one more word", ""} {
		session := f.addSignIn(souvenir.NewSignIn{User: "ann"})
		f.updateUser("ann", souvenir.UserUpdate{Password: &fresh})
		f.signedOut("after the operator has set a password", session.Value)
	}
	f.principal(token.Value)
}

func signInsDisabled(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "ann"})
	session := f.addSignIn(souvenir.NewSignIn{User: "ann"})
	f.updateUser("ann", souvenir.UserUpdate{Disabled: pointer(true)})
	f.signedOut("of a disabled user", session.Value)
	_, err := f.store.Accounts().AddSignIn(f.ctx, souvenir.NewSignIn{User: "ann"})
	f.failsAt("AddSignIn of a disabled user", err, souvenir.ErrUnauthenticated, "")
	f.updateUser("ann", souvenir.UserUpdate{Disabled: pointer(false)})
	f.signedOut("from before the user was disabled", session.Value)
	session = f.addSignIn(souvenir.NewSignIn{User: "ann"})
	id := f.signedIn(session).User.ID
	f.check("DeleteUser", f.store.Accounts().DeleteUser(f.ctx, "ann", nil))
	f.signedOut("of a deleted user", session.Value)
	f.addUser(souvenir.NewUser{ID: id, Name: "ann"})
	f.signedOut("of a deleted user with this id", session.Value)
}

func accessEnded(f *fixture) {
	ann := f.addUser(souvenir.NewUser{Name: "ann"})
	hers := f.as(souvenir.Access{User: ann.ID})
	client := f.register(souvenir.AuthNone)
	others := f.obtainTokens(client)
	local := f.addToken(souvenir.NewToken{Name: "the local user's"})
	for _, kind := range souvenir.AccessKinds() {
		session, keeps, token, app := f.addSignIn(souvenir.NewSignIn{User: "ann"}),
			f.addSignIn(souvenir.NewSignIn{User: "ann"}), hers.addToken(souvenir.NewToken{Name: "x"}), hers.obtainTokens(client)
		waiting := hers.authorize(client)
		f.check("RevokeAccess "+string(kind),
			hers.store.Accounts().RevokeAccess(f.ctx,
				keeps.ID, []souvenir.AccessKind{kind}))
		f.signedIn(keeps)
		if kind == souvenir.AccessSignIns {
			f.signedOut("that was ended", session.Value)
		} else {
			f.signedIn(session)
		}
		if kind == souvenir.AccessTokens {
			f.tokenFails("that was ended", token.Value)
		} else {
			f.principal(token.Value)
		}
		if kind == souvenir.AccessGrants {
			f.ended("ended", client, app)
			_, err := f.operator.Accounts().ExchangeCode(f.ctx, exchanging(client, waiting))
			f.refuses("a code that was waiting", err, souvenir.ErrInvalid, "invalid_grant", "Invalid authorization code")
		} else {
			f.works("not ended", app)
			f.redeem(exchanging(client, waiting))
		}
		f.check("RevokeAccess of all", hers.store.Accounts().RevokeAccess(f.ctx, "", souvenir.AccessKinds()))
		f.signedOut("that was kept before", keeps.Value)
		f.tokenFails("that was ended", token.Value)
		f.ended("ended", client, app)
	}
	f.works("another's application", others)
	f.principal(local.Value)
	f.works("authorized again", hers.obtainTokens(client))
	for _, kinds := range [][]souvenir.AccessKind{nil, {"everything"}, {souvenir.AccessTokens, ""}} {
		f.failsAt("RevokeAccess", hers.store.Accounts().RevokeAccess(f.ctx, "", kinds), souvenir.ErrInvalid,
			"kinds", `"sessions", "grants" or "tokens"`)
	}
}

func accessEndsWithPassword(f *fixture) {
	ann := f.addUser(souvenir.NewUser{Name: "ann", Password: password})
	hers, client := f.as(souvenir.Access{User: ann.ID}), f.register(souvenir.AuthNone)
	local := f.addToken(souvenir.NewToken{Name: "the local user's"})
	for _, fresh := range []string{"quite another", ""} {
		session, token, app := f.addSignIn(souvenir.NewSignIn{User: "ann"}), hers.addToken(souvenir.NewToken{Name: "x"}),
			hers.obtainTokens(client)
		f.updateUser("ann", souvenir.UserUpdate{Password: &fresh})
		f.signedOut("from before the new password", session.Value)
		f.ended("from before the new password", client, app)
		f.principal(token.Value)
		f.updateUser("ann", souvenir.UserUpdate{Password: &fresh, EndTokens: true})
		f.tokenFails("that was ended with the password", token.Value)
		f.works("authorized again", hers.obtainTokens(client))
	}
	token, session := hers.addToken(souvenir.NewToken{Name: "x"}), f.addSignIn(souvenir.NewSignIn{User: "ann"})
	f.updateUser("ann", souvenir.UserUpdate{EndTokens: true})
	f.tokenFails("that was ended alone", token.Value)
	f.signedIn(session)
	f.principal(local.Value)
}

func signInsAdmin(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "boss", Role: souvenir.RoleAdmin})
	f.addUser(souvenir.NewUser{Name: "ann", Role: souvenir.RoleAdmin})
	session := f.addSignIn(souvenir.NewSignIn{User: "ann"})
	f.equal("an admin's", f.signedIn(session).Allows(souvenir.ScopeAdmin), true)
	f.updateUser("ann", souvenir.UserUpdate{Role: pointer(souvenir.RoleUser)})
	p := f.signedIn(session)
	f.equal("of one who was an admin", []any{p.Allows(souvenir.ScopeAdmin), p.Scopes, p.User.Role},
		[]any{false, souvenir.Scopes()[:5], souvenir.RoleUser})
}

func signInsSince(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "ann", Password: password})
	f.addSignIn(souvenir.NewSignIn{User: "ann", Since: f.clock.Now()})
	began := f.clock.Now()
	f.signIn("ann", password)
	f.clock.Pass(time.Second)
	f.updateUser("ann", souvenir.UserUpdate{Password: pointer("quite another")})
	_, err := f.store.Accounts().AddSignIn(f.ctx, souvenir.NewSignIn{User: "ann", Since: began})
	f.failsAt("AddSignIn with the old password", err, souvenir.ErrUnauthenticated, "", "changed")
	f.addSignIn(souvenir.NewSignIn{User: "ann", Since: f.clock.Now()})
	f.addSignIn(souvenir.NewSignIn{User: "ann"})
}

func signInsMost(f *fixture) {
	ann := f.addUser(souvenir.NewUser{Name: "ann"})
	f.addUser(souvenir.NewUser{Name: "ben"})
	bens := f.addSignIn(souvenir.NewSignIn{User: "ben"})
	var first, second souvenir.AddedSignIn
	for i := range 100 {
		session := f.addSignIn(souvenir.NewSignIn{User: "ann"})
		switch i {
		case 0:
			first = session
		case 1:
			second = session
		}
		f.clock.Pass(time.Minute)
	}
	f.signedIn(first)
	last := f.addSignIn(souvenir.NewSignIn{User: "ann"})
	f.equal("sessions", len(f.as(souvenir.Access{User: ann.ID}).signIns()), 100)
	f.signedOut("that was unused longest", second.Value)
	for _, session := range []souvenir.AddedSignIn{first, last, bens} {
		f.signedIn(session)
	}
}

func signInsReadOnly(f *fixture) {
	ann := f.addUser(souvenir.NewUser{Name: "ann"})
	session := f.addSignIn(souvenir.NewSignIn{User: "ann"})
	options := f.options(f.embedder)
	options.ReadOnly = true
	view := *f
	view.reader = f.open(f.T, options)
	f.clock.Pass(time.Hour)
	view.signedIn(session)
	f.equal("noted", f.as(souvenir.Access{User: ann.ID}).signIns(), []souvenir.SignIn{session.SignIn})
	_, err := view.reader.Accounts().AddSignIn(f.ctx, souvenir.NewSignIn{User: "ann"})
	f.fails("AddSignIn", err, souvenir.ErrReadOnly)
}

func signInsPurged(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "ann"})
	f.addSignIn(souvenir.NewSignIn{User: "ann"})
	kept := f.addSignIn(souvenir.NewSignIn{User: "ann"})
	f.clock.Pass(10 * day)
	f.signedIn(kept)
	for passes, want := range []int{0, 1, 0} {
		purged, err := f.store.Upkeep().Purge(f.ctx, &souvenir.PurgeOptions{TrustClock: true})
		f.check("Purge", err)
		f.equal(fmt.Sprintf("purge %d", passes), purged, souvenir.PurgeReport{SignIns: want})
		f.clock.Pass(4 * day)
		f.signedIn(kept)
	}
}

func browsersKnown(f *fixture) {
	ann, ben := f.addUser(souvenir.NewUser{Name: "ann"}), f.addUser(souvenir.NewUser{Name: "ben"})
	session := f.addSignIn(souvenir.NewSignIn{User: "ann"})
	check := func(what, user, mark string, known bool) {
		f.Helper()
		err := f.reader.Accounts().CheckBrowser(f.ctx, souvenir.BrowserCheck{User: user, Mark: mark})
		if known {
			f.check(what, err)
		} else {
			f.failsAt(what, err, souvenir.ErrUnauthenticated, "mark")
		}
	}
	check("a mark", ann.ID, session.Mark, true)
	check("a mark of another user", ben.ID, session.Mark, false)
	check("a mark of no user", "", session.Mark, false)
	check("the value of a sign-in", ann.ID, session.Value, false)
	f.signedOut("with a mark", session.Mark)
	f.check("RevokeSignIns", f.as(souvenir.Access{User: ann.ID}).store.Accounts().RevokeSignIns(f.ctx, "", nil))
	check("a mark after signing out", ann.ID, session.Mark, true)
	f.clock.Pass(100 * day)
	later := f.addSignIn(souvenir.NewSignIn{User: "ann"})
	f.equal("the key of a later mark is the same",
		strings.Split(later.Mark, ".")[0] == strings.Split(session.Mark, ".")[0],
		false)
	f.clock.Pass(200 * day)
	f.addSignIn(souvenir.NewSignIn{User: "ben"})
	_, err := f.store.Upkeep().Purge(f.ctx, &souvenir.PurgeOptions{TrustClock: true})
	f.check("Purge", err)
	check("a mark of an older key", ann.ID, session.Mark, true)
	f.clock.Pass(66 * day)
	check("a mark after a year", ann.ID, session.Mark, false)
	check("a younger mark", ann.ID, later.Mark, true)
	keys, err := f.reader.Accounts().SigningKeys(f.ctx)
	f.check("SigningKeys", err)
	f.equal("public keys", len(keys), 0)
	_, err = f.operator.Accounts().RotateSigningKey(f.ctx)
	f.check("RotateSigningKey", err)
	check("a mark after the keys have been replaced", ann.ID, later.Mark, false)
	check("a new mark", ann.ID, f.addSignIn(souvenir.NewSignIn{User: "ann"}).Mark, true)
}
