package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func tokens() concept {
	return concept{"Tokens", []promise{
		{"a token speaks for its user, as far as it was given", tokensChecked},
		{"a token's value is shown once, and listed is the rest", tokensListed},
		{"every invalid token is refused in the same words", tokensRefused},
		{"a token ends when it was said to", tokensExpire},
		{"a token for projects reaches these and keeps its meaning", tokensProjects},
		{"the admin scope is for admins, as long as they are", tokensAdmin},
		{"the last use is noted to the minute", tokensUsed},
		{"a user's tokens are the user's alone", tokensOwn},
		{"a read-only handle checks tokens", tokensReadOnly},
		{"errors name what is wrong with a new token", tokensArguments},
		{"a user has at most 1,000 tokens", tokensMost},
		{"a token that an application made ends with what the application was allowed", tokensGranted},
		{"a paused credential is refused until it is resumed, with what was made through it", pausedCredentials},
		{"an application stays in the list as long as a token that it made", tokensKeepGrants},
	}}
}

func (f *fixture) addToken(n souvenir.NewToken) souvenir.AddedToken {
	f.Helper()
	added, err := f.store.Accounts().AddToken(f.ctx, n)
	f.check("AddToken "+n.Name, err)
	return added
}

func (f *fixture) tokens() []souvenir.Token {
	f.Helper()
	all, err := f.reader.Accounts().Tokens(f.ctx)
	f.check("Tokens", err)
	return all
}

// principal checks that a token is valid.
func (f *fixture) principal(value string) souvenir.Principal {
	f.Helper()
	p, err := f.reader.Accounts().CheckToken(f.ctx, value)
	f.check("CheckToken", err)
	return p
}

func (f *fixture) tokenFails(what, value string) {
	f.Helper()
	p, err := f.reader.Accounts().CheckToken(f.ctx, value)
	f.failsAt("CheckToken "+what, err, souvenir.ErrUnauthenticated, "")
	if err != nil && err.Error() != "the token is not valid; it may have expired or been revoked" || p.User.ID != "" ||
		p.Scopes != nil {
		f.Errorf("CheckToken %s says more than it may: %+v, %v, want one text for all", what, p, err)
	}
}

func tokensChecked(f *fixture) {
	ann := f.addUser(souvenir.NewUser{Name: "ann"})
	for _, c := range []struct {
		scopes   []souvenir.Scope
		readOnly bool
		allowed  []souvenir.Scope
	}{
		{nil, false, souvenir.DefaultScopes()},
		{[]souvenir.Scope{souvenir.ScopeAccount}, false, []souvenir.Scope{souvenir.ScopeAccount}},
		{[]souvenir.Scope{souvenir.ScopeMemoryRead}, true, []souvenir.Scope{souvenir.ScopeMemoryRead}},
		{[]souvenir.Scope{souvenir.ScopeFilesRead, souvenir.ScopeMemoryRead}, true,
			[]souvenir.Scope{souvenir.ScopeMemoryRead, souvenir.ScopeFilesRead}},
		{[]souvenir.Scope{souvenir.ScopeMemoryWrite}, false,
			[]souvenir.Scope{souvenir.ScopeMemoryRead, souvenir.ScopeMemoryWrite}},
		{[]souvenir.Scope{souvenir.ScopeFilesWrite}, false,
			[]souvenir.Scope{souvenir.ScopeFilesRead, souvenir.ScopeFilesWrite}},
	} {
		added := f.addToken(souvenir.NewToken{Name: "laptop", User: "ann", Scopes: c.scopes})
		p := f.principal(added.Value)
		f.equal("user", p.User, ann)
		f.equal("access", p.Access, souvenir.Access{User: ann.ID, ReadOnly: c.readOnly})
		f.equal("ids", []string{p.TokenID, p.ClientID, p.GrantID}, []string{added.ID, "", ""})
		f.equal("scopes", p.Scopes, added.Scopes)
		var allowed []souvenir.Scope
		for _, scope := range souvenir.Scopes() {
			if p.Allows(scope) {
				allowed = append(allowed, scope)
			}
		}
		f.equal("allowed", allowed, c.allowed)
	}
}

func tokensListed(f *fixture) {
	same(f, "none", f.tokens(), nil)
	first := f.addToken(souvenir.NewToken{Name: "first"})
	f.clock.Pass(time.Second)
	second := f.addToken(souvenir.NewToken{Name: "second",
		Scopes: []souvenir.Scope{"files:read", "memory:read", "files:read"}, ExpiresIn: time.Hour})
	for _, added := range []souvenir.AddedToken{first, second} {
		if len(added.Value) != 47 || !strings.HasPrefix(added.Value, "mcp_") ||
			strings.Trim(added.Value[4:], "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			f.Errorf("the value %q is not as it should be, want mcp_ and 43 characters of base64", added.Value)
		}
		f.equal("prefix", added.Prefix, added.Value[:8])
	}
	if first.Value == second.Value {
		f.Errorf("two tokens are one: got %v, want value other than %v", first.Value, second.Value)
	}
	f.equal("listed", f.tokens(), []souvenir.Token{second.Token, first.Token})
	listed := toJSON(f.tokens())
	if strings.Contains(listed, first.Value) || strings.Contains(listed, first.Value[12:]) {
		f.Errorf("the list shows a token: %s, want no %q and no %q in it", listed, first.Value,
			first.Value[12:])
	}
	f.equal("as JSON", toJSON(second.Token),
		fmt.Sprintf(`{"id":%q,"name":"second","prefix":%q,"scopes":["memory:read","files:read"],"projects":null,`+
			`"created_at":"2026-03-01T09:00:01Z","last_used_at":null,"expires_at":"2026-03-01T10:00:01Z"}`, second.ID,
			second.Prefix))
	var fields map[string]any
	f.check("JSON", json.Unmarshal([]byte(toJSON(first)), &fields))
	f.equal("the value in JSON", fields["token"], any(first.Value))
	f.check("RevokeToken", f.store.Accounts().RevokeToken(f.ctx, first.ID))
	f.equal("after the deletion", f.tokens(), []souvenir.Token{second.Token})
	f.failsAt("RevokeToken again", f.store.Accounts().RevokeToken(f.ctx, first.ID), souvenir.ErrNotFound, "id", first.ID)
}

func tokensRefused(f *fixture) {
	good := f.addToken(souvenir.NewToken{Name: "good"})
	deleted := f.addToken(souvenir.NewToken{Name: "deleted"})
	f.check("RevokeToken", f.store.Accounts().RevokeToken(f.ctx, deleted.ID))
	v := good.Value
	swapped := v[:46] + string(v[46]^1)
	for what, value := range map[string]string{
		"that is empty": "", "that is a start": "mcp_", "that was deleted": deleted.Value,
		"with another last letter": swapped, "in capitals": strings.ToUpper(v), "cut off": v[:46],
		"with more": v + "x", "without its start": v[4:], "with a space": v + " ", "by prefix": v[:8] +
			strings.Repeat("%", 39), "by pattern": "mcp_" + strings.Repeat("_", 43),
		"that is SQL": "mcp_' OR 1=1; --", "by id": good.ID, "with a zero byte": v[:46] + "\x00", "huge": "mcp_" +
			strings.Repeat("a", 1<<20), "that is no UTF-8": "mcp_" + strings.Repeat("\xff", 43),
	} {
		f.tokenFails(what, value)
	}
	f.principal(v)
}

func tokensExpire(f *fixture) {
	soon := f.addToken(souvenir.NewToken{Name: "soon", ExpiresIn: time.Minute})
	later := f.addToken(souvenir.NewToken{Name: "later",
		ExpiresAt: f.clock.Now().Add(time.Hour).In(time.FixedZone("", 3600))})
	never := f.addToken(souvenir.NewToken{Name: "never"})
	f.equal("times", []time.Time{soon.ExpiresAt, later.ExpiresAt, never.ExpiresAt},
		[]time.Time{f.clock.Now().Add(time.Minute), f.clock.Now().Add(time.Hour), {}})
	f.clock.Pass(time.Minute - time.Microsecond)
	f.principal(soon.Value)
	f.clock.Pass(time.Microsecond)
	f.tokenFails("that has just expired", soon.Value)
	f.principal(later.Value)
	f.clock.Pass(time.Hour)
	f.tokenFails("that has expired", later.Value)
	f.clock.Pass(100 * 365 * 24 * time.Hour)
	f.principal(never.Value)
	f.equal("listed all the same", len(f.tokens()), 3)
}

func tokensProjects(f *fixture) {
	f.add(souvenir.NewMemory{Content: "rocket", ProjectID: "p-1", ProjectName: "apollo"})
	f.add(souvenir.NewMemory{Content: "capsule", ProjectID: "gemini"})
	f.addTexts("no project")
	added := f.addToken(souvenir.NewToken{Name: "x", Projects: []string{"p-1", "local/p-1"}})
	f.equal("projects", added.Projects, []string{"local/p-1"})
	p := f.principal(added.Value)
	f.equal("access", p.Access, souvenir.Access{User: souvenir.LocalUser, Projects: []string{"local/p-1"}})
	f.same("seen", contents(f.as(p.Access).search(souvenir.Query{})), "rocket")
	f.equal("listed", f.tokens()[0].Projects, []string{"local/p-1"})
	for _, refs := range [][]string{{"unknown"}, {"p-1", ""}, {"ann/p-1"}} {
		_, err := f.store.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "x", Projects: refs})
		f.failsAt("AddToken for "+brief(refs), err, souvenir.ErrNotFound, "projects")
	}
	ann := f.addUser(souvenir.NewUser{Name: "ann"})
	_, err := f.store.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "x", User: ann.ID, Projects: []string{"p-1"}})
	f.failsAt("AddToken for a project that the other user does not see", err, souvenir.ErrNotFound, "projects")
}

func tokensAdmin(f *fixture) {
	boss, ann := f.addUser(souvenir.NewUser{Name: "boss", Role: souvenir.RoleAdmin}),
		f.addUser(souvenir.NewUser{Name: "ann", Role: souvenir.RoleAdmin})
	token, err := f.store.As(souvenir.Access{User: ann.ID}).Accounts().AddToken(f.ctx,
		souvenir.NewToken{Name: "x", Scopes: souvenir.Scopes()})
	f.check("AddToken", err)
	f.equal("an admin's", f.principal(token.Value).Allows(souvenir.ScopeAdmin), true)
	byDefault := f.addToken(souvenir.NewToken{Name: "x", User: boss.ID})
	f.equal("by default", f.principal(byDefault.Value).Allows(souvenir.ScopeAdmin), false)
	f.updateUser("ann", souvenir.UserUpdate{Role: pointer(souvenir.RoleUser)})
	f.equal("of one who was an admin", f.principal(token.Value).Allows(souvenir.ScopeAdmin), false)
	for _, s := range []*souvenir.Store{f.store, f.store.As(souvenir.Access{User: ann.ID})} {
		_, err = s.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "x", Scopes: souvenir.Scopes()})
		f.failsAt("AddToken with the admin scope", err, souvenir.ErrForbidden, "scopes", `"admin"`)
	}
}

func tokensUsed(f *fixture) {
	added := f.addToken(souvenir.NewToken{Name: "x"})
	used := func() time.Time {
		f.Helper()
		return f.tokens()[0].LastUsedAt
	}
	f.equal("never", used(), time.Time{})
	f.clock.Pass(time.Hour)
	first := f.clock.Now()
	f.principal(added.Value)
	f.equal("first", used(), first)
	f.clock.Pass(59 * time.Second)
	f.principal(added.Value)
	f.equal("within a minute", used(), first)
	f.clock.Pass(time.Second)
	f.principal(added.Value)
	f.equal("after a minute", used(), f.clock.Now())
	f.clock.Pass(-time.Hour)
	f.principal(added.Value)
}

func tokensOwn(f *fixture) {
	ann, ben := f.addUser(souvenir.NewUser{Name: "Ann"}), f.addUser(souvenir.NewUser{Name: "ben"})
	hers, his := f.as(souvenir.Access{User: ann.ID}), f.as(souvenir.Access{User: ben.ID})
	token := hers.addToken(souvenir.NewToken{Name: "hers"})
	f.equal("of oneself by name", hers.addToken(souvenir.NewToken{Name: "hers, too", User: "ann"}).Name, "hers, too")
	f.equal("hers", len(hers.tokens()), 2)
	same(f, "his", his.tokens(), nil)
	same(f, "the local user's", f.tokens(), nil)
	unknown := his.store.Accounts().RevokeToken(f.ctx, "nothing")
	err := his.store.Accounts().RevokeToken(f.ctx, token.ID)
	f.failsAt("RevokeToken of another's", err, souvenir.ErrNotFound, "id")
	f.equal("in the words for what does not exist", strings.ReplaceAll(fmt.Sprint(err), token.ID, "nothing"),
		fmt.Sprint(unknown))
	_, err = his.store.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "x", User: "ann"})
	f.failsAt("AddToken for another", err, souvenir.ErrForbidden, "user")
	f.principal(token.Value)
	for what, s := range map[string]*souvenir.Store{
		"limited": f.store.As(souvenir.Access{User: ann.ID, Projects: []string{"p"}}),
	} {
		_, err := s.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "x"})
		f.fails("AddToken, "+what, err, souvenir.ErrForbidden)
		_, err = s.Accounts().Tokens(f.ctx)
		f.fails("Tokens, "+what, err, souvenir.ErrForbidden)
		f.fails("RevokeToken, "+what, s.Accounts().RevokeToken(f.ctx, token.ID), souvenir.ErrForbidden)
	}
	reading := f.store.As(souvenir.Access{User: ann.ID, ReadOnly: true})
	_, err = reading.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "x"})
	f.fails("AddToken for reading only", err, souvenir.ErrReadOnly)
	f.fails("RevokeToken for reading only", reading.Accounts().RevokeToken(f.ctx, token.ID), souvenir.ErrReadOnly)
}

func tokensReadOnly(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "ann", Password: password})
	added := f.addToken(souvenir.NewToken{Name: "x", User: "ann"})
	options := f.options(f.embedder)
	options.ReadOnly = true
	view := *f
	view.reader = f.open(f.T, options)
	f.equal("the token", view.principal(added.Value).TokenID, added.ID)
	view.signIn("ann", password)
	view.signInFails("ann", "wrong password")
	_, err := view.reader.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "y"})
	f.fails("AddToken", err, souvenir.ErrReadOnly)
	_, err = view.reader.Accounts().AddUser(f.ctx, souvenir.NewUser{Name: "ben"})
	f.fails("AddUser", err, souvenir.ErrReadOnly)
}

func tokensArguments(f *fixture) {
	for _, c := range []struct {
		token    souvenir.NewToken
		kind     *souvenir.Error
		argument string
	}{
		{souvenir.NewToken{}, souvenir.ErrInvalid, "name"},
		{souvenir.NewToken{Name: "a\x1b[2J"}, souvenir.ErrInvalid, "name"},
		{souvenir.NewToken{Name: strings.Repeat("x", 129)}, souvenir.ErrTooLarge, "name"},
		{souvenir.NewToken{Name: "x", Scopes: []souvenir.Scope{}}, souvenir.ErrInvalid, "scopes"},
		{souvenir.NewToken{Name: "x", Scopes: []souvenir.Scope{"memory:*"}}, souvenir.ErrInvalid, "scopes"},
		{souvenir.NewToken{Name: "x", Projects: []string{}}, souvenir.ErrInvalid, "projects"},
		{souvenir.NewToken{Name: "x", Projects: make([]string, 101)}, souvenir.ErrTooLarge, "projects"},
		{souvenir.NewToken{Name: "x", ExpiresIn: -time.Second}, souvenir.ErrInvalid, "expires_in"},
		{souvenir.NewToken{Name: "x", ExpiresAt: f.clock.Now()}, souvenir.ErrInvalid, "expires_at"},
		{souvenir.NewToken{Name: "x", ExpiresAt: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, souvenir.ErrInvalid,
			"expires_at"},
		{souvenir.NewToken{Name: "x", ExpiresAt: f.clock.Now().Add(time.Hour), ExpiresIn: time.Hour}, souvenir.ErrInvalid,
			"expires_at"},
		{souvenir.NewToken{Name: "x", User: "noah"}, souvenir.ErrNotFound, "user"},
	} {
		added, err := f.store.Accounts().AddToken(f.ctx, c.token)
		f.failsAt("AddToken "+brief(c.token), err, c.kind, c.argument)
		f.equal("a value beside an error", added.Value, "")
	}
	same(f, "tokens", f.tokens(), nil)
}

func tokensGranted(f *fixture) {
	ann := f.as(souvenir.Access{User: f.addUser(souvenir.NewUser{Name: "ann"}).ID})
	own := ann.addToken(souvenir.NewToken{Name: "own"})
	for what, end := range map[string]func(c souvenir.RegisteredClient, grant string) error{
		"revoked": func(_ souvenir.RegisteredClient, grant string) error {
			return ann.store.Accounts().RevokeGrant(f.ctx, grant)
		},
		"ended with others": func(souvenir.RegisteredClient, string) error {
			return ann.store.Accounts().RevokeAccess(f.ctx, "", []souvenir.AccessKind{souvenir.AccessGrants})
		},
		"client deactivated": func(c souvenir.RegisteredClient, _ string) error {
			return f.operator.Accounts().DeactivateClient(f.ctx, c.ID)
		},
	} {
		c := f.register(souvenir.AuthNone)
		p := f.works("the application", ann.obtainTokens(c))
		added := ann.addToken(souvenir.NewToken{Name: what, GrantID: p.GrantID})
		f.equal("made through", []string{added.GrantID, added.ClientName}, []string{p.GrantID, c.Metadata.ClientName})
		checked := f.principal(added.Value)
		f.equal("ids", []string{checked.TokenID, checked.ClientID, checked.GrantID}, []string{added.ID, "", p.GrantID})
		used := added.Token
		used.LastUsedAt = f.clock.Now()
		f.clock.Pass(time.Second) // for the order of the list
		another := ann.addToken(souvenir.NewToken{Name: "of the token", GrantID: checked.GrantID})
		f.equal("listed", ann.tokens()[:2], []souvenir.Token{another.Token, used})
		f.check(what, end(c, p.GrantID))
		f.tokenFails(what, added.Value)
		f.tokenFails("of a token, "+what, another.Value)
		f.equal("listed when it has ended", len(ann.tokens()), 1)
		_, err := ann.store.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "late", GrantID: p.GrantID})
		f.failsAt("AddToken, "+what, err, souvenir.ErrNotFound, "grant_id", p.GrantID)
	}
	f.principal(own.Value)
	hers := f.works("the application", ann.obtainTokens(f.register(souvenir.AuthNone)))
	for _, grant := range []string{hers.GrantID, "unknown"} {
		_, err := f.store.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "x", GrantID: grant})
		f.failsAt("AddToken with a grant that is not one's own", err, souvenir.ErrNotFound, "grant_id", grant)
	}
	forAnn := f.addToken(souvenir.NewToken{Name: "x", User: "ann", GrantID: hers.GrantID})
	f.equal("the operator's for another", f.principal(forAnn.Value).GrantID, hers.GrantID)
}

func tokensKeepGrants(f *fixture) {
	c := f.register(souvenir.AuthNone)
	p := f.works("the application", f.obtainTokens(c))
	added := f.addToken(souvenir.NewToken{Name: "x", GrantID: p.GrantID, ExpiresIn: 100 * 24 * time.Hour})
	left := func() (ids []string) {
		f.Helper()
		_, err := f.operator.Upkeep().Purge(f.ctx, &souvenir.PurgeOptions{TrustClock: true})
		f.check("Purge", err)
		grants, err := f.store.Accounts().Grants(f.ctx)
		f.check("Grants", err)
		for _, g := range grants {
			ids = append(ids, g.ID)
		}
		return ids
	}
	f.clock.Pass(99 * 24 * time.Hour)
	same(f, "while the token counts", left(), []string{p.GrantID})
	f.principal(added.Value)
	f.clock.Pass(24 * time.Hour)
	same(f, "once it does not", left(), nil)
	f.tokenFails("of an application that is gone", added.Value)
}

func tokensMost(f *fixture) {
	together(func(worker int) {
		for range 1000 / workers {
			if _, err := f.store.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "x", ExpiresIn: time.Hour}); err != nil {
				f.Errorf("AddToken: %v", err)
				return
			}
		}
	})
	for range 1000 % workers {
		f.addToken(souvenir.NewToken{Name: "x", ExpiresIn: time.Hour})
	}
	_, err := f.store.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "y"})
	f.failsAt("one too many", err, souvenir.ErrTooLarge, "", "1000")
	f.check("RevokeToken", f.store.Accounts().RevokeToken(f.ctx, f.tokens()[0].ID))
	f.addToken(souvenir.NewToken{Name: "in its place"})
	f.clock.Pass(time.Hour)
	f.addToken(souvenir.NewToken{Name: "after the others have expired"})
}
