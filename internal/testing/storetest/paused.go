package storetest

import (
	"time"

	"github.com/souvenir-ai/souvenir"
)

func pausedCredentials(f *fixture) {
	u := f.addUser(souvenir.NewUser{Name: "ann", Password: password})
	ann := f.as(souvenir.Access{User: u.ID})
	c := f.register(souvenir.AuthNone)
	set := ann.obtainTokens(c)
	grant := f.works("the application", set).GrantID
	parent := ann.addToken(souvenir.NewToken{Name: "parent"})
	child := ann.addToken(souvenir.NewToken{Name: "child", TokenID: parent.ID})
	grandchild := ann.addToken(souvenir.NewToken{Name: "grandchild", TokenID: child.ID})
	other := ann.addToken(souvenir.NewToken{Name: "other"})
	ofApp := ann.addToken(souvenir.NewToken{Name: "of the application", GrantID: grant})
	pauseToken := func(id string, is bool) souvenir.Token {
		f.Helper()
		f.clock.Pass(time.Second)
		t, err := ann.store.Accounts().UpdateToken(f.ctx, id, souvenir.TokenUpdate{Paused: &is})
		f.check("UpdateToken", err)
		if t.ID != id || t.PausedAt.IsZero() == is {
			f.Errorf("UpdateToken returns %+v, want the token, paused: %v", t, is)
		}
		return t
	}

	// A token with the tokens made through it. A token that is paused by itself stays so until its own pause ends.
	pauseToken(grandchild.ID, true)
	first := pauseToken(parent.ID, true)
	f.equal("pausing again changes nothing", pauseToken(parent.ID, true).PausedAt, first.PausedAt)
	f.tokensPaused("a paused token and its descendants", parent.Value, child.Value, grandchild.Value)
	f.principal(other.Value)
	f.principal(ofApp.Value)
	_, err := ann.store.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "late", TokenID: child.ID})
	f.fails("AddToken through a paused token", err, souvenir.ErrForbidden)
	pauseToken(parent.ID, false)
	f.principal(parent.Value)
	f.principal(child.Value)
	f.tokensPaused("a token that was paused by itself", grandchild.Value)
	pauseToken(grandchild.ID, false)
	f.principal(grandchild.Value)
	same, err := ann.store.Accounts().UpdateToken(f.ctx, other.ID, souvenir.TokenUpdate{})
	f.check("UpdateToken that changes nothing", err)
	f.equal("a token that nothing changes", same.PausedAt.IsZero(), true)

	pausedApplication(f, ann, c, set, ofApp)

	// Only the user may pause a credential, and only one that has not ended.
	ben := f.as(souvenir.Access{User: f.addUser(souvenir.NewUser{Name: "ben"}).ID})
	_, err = ben.store.Accounts().UpdateToken(f.ctx, parent.ID, souvenir.TokenUpdate{Paused: pointer(true)})
	f.fails("UpdateToken of another's", err, souvenir.ErrNotFound)
	_, err = ben.store.Accounts().UpdateGrant(f.ctx, grant, souvenir.GrantUpdate{Paused: pointer(true)})
	f.fails("UpdateGrant of another's", err, souvenir.ErrNotFound)
	f.check("RevokeToken", ann.store.Accounts().RevokeToken(f.ctx, parent.ID))
	_, err = ann.store.Accounts().UpdateToken(f.ctx, child.ID, souvenir.TokenUpdate{Paused: pointer(true)})
	f.fails("UpdateToken of one that has ended", err, souvenir.ErrNotFound)
	f.check("RevokeGrant", ann.store.Accounts().RevokeGrant(f.ctx, grant))
	_, err = ann.store.Accounts().UpdateGrant(f.ctx, grant, souvenir.GrantUpdate{Paused: pointer(true)})
	f.fails("UpdateGrant of one that was revoked", err, souvenir.ErrNotFound)
}

// tokensPaused checks that tokens are refused because they are paused.
func (f *fixture) tokensPaused(what string, values ...string) {
	f.Helper()
	for _, value := range values {
		_, err := f.reader.Accounts().CheckToken(f.ctx, value)
		f.fails(what, err, souvenir.ErrForbidden)
	}
}

// pausedApplication pauses an application with its tokens. It may renew them, so that it continues after the pause.
func pausedApplication(f, ann *fixture, c souvenir.RegisteredClient, set souvenir.TokenSet, ofApp souvenir.AddedToken) {
	grant := ofApp.GrantID
	pauseGrant := func(is bool) {
		f.Helper()
		g, err := ann.store.Accounts().UpdateGrant(f.ctx, grant, souvenir.GrantUpdate{Paused: &is})
		f.check("UpdateGrant", err)
		if g.ID != grant || g.PausedAt.IsZero() == is {
			f.Errorf("UpdateGrant returns %+v, want the grant, paused: %v", g, is)
		}
	}
	pauseGrant(true)
	pauseGrant(true)
	_, err := f.reader.Accounts().CheckAccessToken(f.ctx, checking(set))
	f.fails("CheckAccessToken of a paused application", err, souvenir.ErrForbidden)
	f.tokensPaused("a token that a paused application made", ofApp.Value)
	_, err = ann.store.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "late", GrantID: grant})
	f.fails("AddToken through a paused application", err, souvenir.ErrForbidden)
	renewed := f.refresh(c, set)
	_, err = f.reader.Accounts().CheckAccessToken(f.ctx, checking(renewed))
	f.fails("CheckAccessToken of what a paused application renewed", err, souvenir.ErrForbidden)
	pauseGrant(false)
	f.works("the application again", renewed)
	f.principal(ofApp.Value)
}
