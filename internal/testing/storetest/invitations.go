package storetest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func invitations() concept {
	return concept{"Invitations", []promise{
		{"an invitation makes the account that it is for, once", invitationsAccepted},
		{"an invitation's value is shown once, and listed is the rest", invitationsListed},
		{"an invitation that does not count says why to who holds it", invitationsRefused},
		{"an invalid account does not use up the invitation", invitationsKept},
		{"of several concurrent acceptances of an invitation, one succeeds", invitationsRace},
		{"an invitation counts as long as its maker is an admin", invitationsOfAdmins},
		{"the first account is an admin's, by the newest link", setUp},
		{"an account that cannot sign in leaves the set-up open, which can give it a password", setUpOfTokens},
		{"of several concurrent set-ups of a store, one succeeds", setUpRace},
		{"an identity takes the place of a password", invitationsIdentity},
		{"errors name what is wrong with a new invitation", invitationsArguments},
		{"at most 1,000 invitations wait", invitationsMost},
		{"what was used or has expired is listed for 30 days", invitationsPurged},
		{"a read-only handle checks invitations", invitationsReadOnly},
	}}
}

func (f *fixture) invite(n souvenir.NewInvitation) souvenir.AddedInvitation {
	f.Helper()
	added, err := f.store.Accounts().AddInvitation(f.ctx, n)
	f.check("AddInvitation", err)
	return added
}

func (f *fixture) invitations() []souvenir.Invitation {
	f.Helper()
	all, err := f.reader.Accounts().Invitations(f.ctx)
	f.check("Invitations", err)
	return all
}

func (f *fixture) accept(a souvenir.InvitationAcceptance) souvenir.User {
	f.Helper()
	u, err := f.store.Accounts().AcceptInvitation(f.ctx, a)
	f.check("AcceptInvitation of "+a.Name, err)
	return u
}

// invited checks that an invitation is valid.
func (f *fixture) invited(i souvenir.AddedInvitation) {
	f.Helper()
	found, err := f.reader.Accounts().CheckInvitation(f.ctx, i.Value)
	f.check("CheckInvitation", err)
	f.equal("invitation", found, i.Invitation)
}

// uninvited checks that an invitation can be neither read nor accepted.
func (f *fixture) uninvited(what, value, says string) {
	f.Helper()
	found, err := f.reader.Accounts().CheckInvitation(f.ctx, value)
	f.failsAt("CheckInvitation "+what, err, souvenir.ErrNotFound, "invitation", says)
	f.equal("beside an error", found, souvenir.Invitation{})
	before := f.users()
	u, err := f.store.Accounts().AcceptInvitation(f.ctx,
		souvenir.InvitationAcceptance{Value: value, Name: "uninvited", Password: password})
	f.failsAt("AcceptInvitation "+what, err, souvenir.ErrNotFound, "invitation", says)
	f.equal("beside an error", u, souvenir.User{})
	same(f, "users", f.users(), before)
}

func invitationsAccepted(f *fixture) {
	boss := f.addUser(souvenir.NewUser{Name: "boss", Role: souvenir.RoleAdmin})
	for _, c := range []struct {
		invitation souvenir.NewInvitation
		email      string
		want       souvenir.User
	}{
		{souvenir.NewInvitation{}, "", souvenir.User{Name: "a0", Role: souvenir.RoleUser}},
		{souvenir.NewInvitation{Email: "a1@example.com", CreatedBy: "Boss"}, "",
			souvenir.User{Name: "a1", Role: souvenir.RoleUser, Email: "a1@example.com"}},
		{souvenir.NewInvitation{Email: "x@example.com", CreatedBy: boss.ID, Role: souvenir.RoleAdmin}, "a2@example.com",
			souvenir.User{Name: "a2", Role: souvenir.RoleAdmin, Email: "a2@example.com"}},
	} {
		added := f.invite(c.invitation)
		f.invited(added)
		f.clock.Pass(time.Hour)
		made := f.accept(souvenir.InvitationAcceptance{Value: added.Value, Name: c.want.Name, Password: password,
			Email: c.email})
		c.want.ID, c.want.HasPassword, c.want.CreatedAt = made.ID, true, f.clock.Now()
		f.equal("made", made, c.want)
		f.equal("signed in", f.signIn(c.want.Name, password), made)
		used := f.invitations()[0]
		f.equal("used", []any{used.ID, used.UsedBy, used.UsedAt}, []any{added.ID, made.ID, f.clock.Now()})
		f.uninvited("that was used", added.Value, "has been used")
	}
}

func invitationsListed(f *fixture) {
	same(f, "none", f.invitations(), nil)
	boss := f.addUser(souvenir.NewUser{Name: "boss", Role: souvenir.RoleAdmin})
	first := f.invite(souvenir.NewInvitation{Note: "for the new one", Email: "new@example.com", CreatedBy: "boss"})
	f.clock.Pass(time.Second)
	second := f.invite(souvenir.NewInvitation{Role: souvenir.RoleAdmin,
		ExpiresAt: f.clock.Now().Add(time.Hour).In(time.FixedZone("", 3600))})
	if v := first.Value; len(v) != 47 || !strings.HasPrefix(v, "inv_") || v == second.Value {
		f.Errorf(`got the values %q and %q, want two different ones of 47 bytes that begin with "inv_"`, v,
			second.Value)
	}
	f.equal("listed", f.invitations(), []souvenir.Invitation{second.Invitation, first.Invitation})
	f.equal("as JSON", toJSON(first.Invitation),
		fmt.Sprintf(`{"id":%q,"purpose":"account","role":"user","email":"new@example.com","note":"for the new `+
			`one","created_by":%q,`+
			`"created_at":"2026-03-01T09:00:00Z","expires_at":"2026-03-08T09:00:00Z"}`, first.ID, boss.ID))
	f.equal("the second as JSON", toJSON(second),
		fmt.Sprintf(`{"id":%q,"purpose":"account","role":"admin","created_at":"2026-03-01T09:00:01Z",`+
			`"expires_at":"2026-03-01T10:00:01Z","invitation":%q}`,
			second.ID, second.Value))
	if strings.Contains(toJSON(f.invitations()), first.Value) {
		f.Errorf("the list shows a value, want no %q in it", first.Value)
	}
}

func invitationsRefused(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "boss", Role: souvenir.RoleAdmin})
	good, soon, gone := f.invite(souvenir.NewInvitation{}),
		f.invite(souvenir.NewInvitation{ExpiresAt: f.clock.Now().Add(time.Hour)}), f.invite(souvenir.NewInvitation{})
	f.check("RevokeInvitation", f.store.Accounts().RevokeInvitation(f.ctx, gone.ID))
	f.failsAt("RevokeInvitation again", f.store.Accounts().RevokeInvitation(f.ctx, gone.ID), souvenir.ErrNotFound, "id",
		gone.ID)
	v := good.Value
	for what, value := range map[string]string{
		"that is empty": "", "that was withdrawn": gone.Value, "cut off": v[:46], "with more": v + "x",
		"with another last letter": v[:46] + string(v[46]^1), "by id": good.ID, "without its start": v[4:],
		"that would be a session": "ses_" + v[4:], "that is SQL": "inv_' OR 1=1; --", "huge": "inv_" +
			strings.Repeat("a", 1<<20), "with a zero byte": v[:46] + "\x00",
	} {
		f.uninvited(what, value, "this invitation is unknown")
	}
	f.clock.Pass(time.Hour - time.Microsecond)
	f.invited(soon)
	f.clock.Pass(time.Microsecond)
	f.uninvited("that has just expired", soon.Value, "has expired")
	f.invited(good)
	f.clock.Pass(7*day - time.Hour)
	f.uninvited("of 7 days", v, "has expired")
}

func invitationsKept(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "Ann"})
	added := f.invite(souvenir.NewInvitation{Email: "ann@example.com"})
	for argument, a := range map[string]souvenir.InvitationAcceptance{
		"name": {Password: password}, "password": {Name: "ben"}, "email": {Name: "ben", Password: password, Email: "nowhere"},
		"subject": {Name: "ben", Identity: souvenir.Identity{Issuer: "https://id.example"}},
		"issuer":  {Name: "ben", Identity: souvenir.Identity{Subject: "x"}},
	} {
		a.Value = added.Value
		_, err := f.store.Accounts().AcceptInvitation(f.ctx, a)
		f.failsAt("AcceptInvitation", err, souvenir.ErrInvalid, argument)
	}
	for name, kind := range map[string]*souvenir.Error{"ＡＮＮ": souvenir.ErrConflict, "ben": souvenir.ErrInvalid} {
		_, err := f.store.Accounts().AcceptInvitation(f.ctx,
			souvenir.InvitationAcceptance{Value: added.Value, Name: name,
				Password: map[string]string{"ben": "password1", "ＡＮＮ": password}[name]})
		f.fails("AcceptInvitation of "+name, err, kind)
	}
	f.equal("users", len(f.users()), 1)
	f.invited(added)
}

func invitationsRace(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "boss", Role: souvenir.RoleAdmin})
	f.raceFor(f.invite(souvenir.NewInvitation{}), 2, "has been used")
}

func setUpRace(f *fixture) {
	f.raceFor(f.invite(souvenir.NewInvitation{Purpose: souvenir.InvitationSetup}), 1, "has been")
}

// raceFor accepts an invitation many times at once through both handles, and then checks the number of users.
func (f *fixture) raceFor(added souvenir.AddedInvitation, users int, says string) {
	f.Helper()
	var accepted atomic.Int64
	together(func(worker int) {
		if !longtest.Part(worker/2, 1, 4) { // each computes the hash of a password
			return
		}
		s := []*souvenir.Store{f.store, f.reader}[worker%2]
		_, err := s.Accounts().AcceptInvitation(f.ctx,
			souvenir.InvitationAcceptance{Value: added.Value, Name: fmt.Sprint("guest ", worker), Password: password})
		if err == nil {
			accepted.Add(1)
			return
		}
		f.failsAt("AcceptInvitation", err, souvenir.ErrNotFound, "invitation", says)
	})
	f.equal("accepted", accepted.Load(), int64(1))
	f.equal("users", len(f.users()), users)
}

func invitationsOfAdmins(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "boss", Role: souvenir.RoleAdmin})
	f.addUser(souvenir.NewUser{Name: "ann", Role: souvenir.RoleAdmin})
	ben := f.addUser(souvenir.NewUser{Name: "ben"})
	added, other := f.invite(souvenir.NewInvitation{CreatedBy: "ann", Role: souvenir.RoleAdmin}),
		f.invite(souvenir.NewInvitation{CreatedBy: "boss"})
	for _, change := range []souvenir.UserUpdate{{Role: pointer(souvenir.RoleUser)}, {Disabled: pointer(true)}} {
		f.updateUser("ann", change)
		f.uninvited("of a former admin", added.Value, "unknown")
		_, err := f.store.Accounts().AddInvitation(f.ctx, souvenir.NewInvitation{CreatedBy: "ann"})
		f.failsAt("AddInvitation by a former admin", err, souvenir.ErrForbidden, "user")
		f.updateUser("ann", souvenir.UserUpdate{Role: pointer(souvenir.RoleAdmin), Disabled: pointer(false)})
		f.invited(added)
	}
	for by, kind := range map[string]*souvenir.Error{ben.ID: souvenir.ErrForbidden, "noah": souvenir.ErrNotFound} {
		_, err := f.store.Accounts().AddInvitation(f.ctx, souvenir.NewInvitation{CreatedBy: by})
		f.failsAt("AddInvitation by "+by, err, kind, "user")
	}
	made := f.accept(souvenir.InvitationAcceptance{Value: f.invite(souvenir.NewInvitation{CreatedBy: "ann"}).Value,
		Name: "carl", Password: password})
	f.check("DeleteUser", f.store.Accounts().DeleteUser(f.ctx, "ann", nil))
	f.uninvited("of a deleted user", added.Value, "unknown")
	f.invited(other)
	f.equal("left", len(f.invitations()), 2)
	f.equal("who came by it stays", f.getUser("carl"), made)
}

func (f *fixture) hasAccounts() bool {
	f.Helper()
	has, err := f.reader.Accounts().HasAccounts(f.ctx)
	f.check("HasAccounts", err)
	return has
}

func setUp(f *fixture) {
	setup := souvenir.NewInvitation{Purpose: souvenir.InvitationSetup}
	f.addTexts("memories without an account")
	f.equal("has accounts", f.hasAccounts(), false)
	first := f.invite(setup)
	f.equal("first", []any{first.Purpose, first.Role, first.ExpiresAt},
		[]any{souvenir.InvitationSetup, souvenir.RoleAdmin, f.clock.Now().Add(day)})
	second := f.invite(setup)
	f.uninvited("that was replaced", first.Value, "replaced")
	f.equal("listed", f.invitations(), []souvenir.Invitation{second.Invitation})
	f.clock.Pass(day)
	f.uninvited("of a day", second.Value, "start the service again")
	third := f.invite(setup)
	boss := f.accept(souvenir.InvitationAcceptance{Value: third.Value, Name: "boss", Password: password})
	f.equal("the first admin", []any{boss.Role, f.hasAccounts()}, []any{souvenir.RoleAdmin, true})
	f.uninvited("that was used", third.Value, "has been used")
	_, err := f.store.Accounts().AddInvitation(f.ctx, setup)
	f.failsAt("AddInvitation", err, souvenir.ErrConflict, "purpose")

	f.inAnother(func(other *fixture) {
		added := other.invite(setup)
		other.invited(added)
		ann := other.addUser(souvenir.NewUser{Name: "ann", Password: password})
		other.uninvited("after the first account", added.Value, "has been set up")
		other.updateUser("ann", souvenir.UserUpdate{Disabled: pointer(true)})
		other.equal("has accounts, disabled ones", other.hasAccounts(), true)
		other.check("DeleteUser", other.store.Accounts().DeleteUser(f.ctx, ann.ID, nil))
		other.equal("has accounts, deleted ones", other.hasAccounts(), false)
		other.invited(added)
	})
}

func setUpOfTokens(f *fixture) {
	builder := f.addUser(souvenir.NewUser{Name: "builder", Role: souvenir.RoleAdmin, Email: "builder@example.com"})
	gone := f.addUser(souvenir.NewUser{Name: "gone"})
	f.updateUser("gone", souvenir.UserUpdate{Disabled: pointer(true)})
	f.equal("has accounts that can sign in", f.hasAccounts(), false)
	added := f.invite(souvenir.NewInvitation{Purpose: souvenir.InvitationSetup})
	f.invited(added)
	_, err := f.store.Accounts().AcceptInvitation(f.ctx,
		souvenir.InvitationAcceptance{Value: added.Value, Name: "gone", Password: password})
	f.failsAt("with the name of a disabled account", err, souvenir.ErrConflict, "name")
	f.invited(added)
	made := f.accept(souvenir.InvitationAcceptance{Value: added.Value, Name: "Builder", Password: password})
	f.equal("it is the account that was there", []any{made.ID, made.Role, made.Email, made.HasPassword},
		[]any{builder.ID, souvenir.RoleAdmin, "builder@example.com", true})
	_, err = f.store.Accounts().CheckPassword(f.ctx, souvenir.Credentials{Name: "builder", Password: password})
	f.check("CheckPassword", err)
	f.equal("the disabled one", f.getUser(gone.ID).HasPassword, false)
	f.equal("has accounts", f.hasAccounts(), true)
	f.uninvited("that was used", added.Value, "has been used")

	f.inAnother(func(other *fixture) {
		ann := other.addUser(souvenir.NewUser{Name: "ann"})
		added := other.invite(souvenir.NewInvitation{Purpose: souvenir.InvitationSetup})
		other.invited(added)
		_, err := other.store.Accounts().LinkIdentity(other.ctx,
			souvenir.NewIdentity{User: ann.ID, Issuer: "https://id.example", Subject: "1"})
		other.check("LinkIdentity", err)
		other.equal("has accounts, at a provider", other.hasAccounts(), true)
		other.uninvited("after an account at a provider", added.Value, "has been set up")
	})
}

func invitationsIdentity(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "boss", Role: souvenir.RoleAdmin})
	added, another := f.invite(souvenir.NewInvitation{}), f.invite(souvenir.NewInvitation{})
	identity := souvenir.Identity{Issuer: "https://id.example", Subject: "ann", Email: "ann@example.com"}
	ann := f.accept(souvenir.InvitationAcceptance{Value: added.Value, Name: "ann", Identity: identity})
	f.equal("password", ann.HasPassword, false)
	found, err := f.reader.Accounts().GetUserByIdentity(f.ctx, identity.Issuer, identity.Subject)
	f.check("GetUserByIdentity", err)
	f.equal("by identity", found, ann)
	_, err = f.store.Accounts().AcceptInvitation(f.ctx,
		souvenir.InvitationAcceptance{Value: another.Value, Name: "ben", Identity: identity})
	f.failsAt("with the identity of another", err, souvenir.ErrConflict, "subject")
	f.invited(another)
	f.equal("users", len(f.users()), 2)
}

func invitationsArguments(f *fixture) {
	now := f.clock.Now()
	for _, c := range []struct {
		invitation souvenir.NewInvitation
		kind       *souvenir.Error
		argument   string
	}{
		{souvenir.NewInvitation{Purpose: "party"}, souvenir.ErrInvalid, "purpose"},
		{souvenir.NewInvitation{Role: "king"}, souvenir.ErrInvalid, "role"},
		{souvenir.NewInvitation{Purpose: souvenir.InvitationSetup, Role: souvenir.RoleUser}, souvenir.ErrInvalid, "role"},
		{souvenir.NewInvitation{Email: "nowhere"}, souvenir.ErrInvalid, "email"},
		{souvenir.NewInvitation{Note: "two\nlines"}, souvenir.ErrInvalid, "note"},
		{souvenir.NewInvitation{Note: strings.Repeat("x", 201)}, souvenir.ErrTooLarge, "note"},
		{souvenir.NewInvitation{ExpiresAt: now}, souvenir.ErrInvalid, "expires_at"},
		{souvenir.NewInvitation{ExpiresAt: now.Add(367 * day)}, souvenir.ErrInvalid, "expires_at"},
	} {
		added, err := f.store.Accounts().AddInvitation(f.ctx, c.invitation)
		f.failsAt("AddInvitation "+brief(c.invitation), err, c.kind, c.argument)
		f.equal("a value beside an error", added.Value, "")
	}
	same(f, "invitations", f.invitations(), nil)
}

func invitationsMost(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "boss", Role: souvenir.RoleAdmin})
	together(func(int) {
		for range 1000 / workers {
			if _, err := f.store.Accounts().AddInvitation(f.ctx, souvenir.NewInvitation{}); err != nil {
				f.Errorf("AddInvitation: %v", err)
				return
			}
		}
	})
	for range 1000 % workers {
		f.invite(souvenir.NewInvitation{})
	}
	_, err := f.store.Accounts().AddInvitation(f.ctx, souvenir.NewInvitation{})
	f.failsAt("one too many", err, souvenir.ErrTooLarge, "", "1000")
	f.accept(souvenir.InvitationAcceptance{Value: f.replaceOne(), Name: "ann", Password: password})
	f.invite(souvenir.NewInvitation{})
	f.clock.Pass(7 * day)
	f.invite(souvenir.NewInvitation{})
}

// replaceOne withdraws an invitation and returns the value of a new one.
func (f *fixture) replaceOne() string {
	f.Helper()
	f.check("RevokeInvitation", f.store.Accounts().RevokeInvitation(f.ctx, f.invitations()[0].ID))
	return f.invite(souvenir.NewInvitation{}).Value
}

func invitationsPurged(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "boss", Role: souvenir.RoleAdmin})
	used := f.invite(souvenir.NewInvitation{ExpiresAt: f.clock.Now().Add(300 * day)})
	f.accept(souvenir.InvitationAcceptance{Value: used.Value, Name: "ann", Password: password})
	expires := f.invite(souvenir.NewInvitation{})
	waits := f.invite(souvenir.NewInvitation{ExpiresAt: f.clock.Now().Add(300 * day)})
	for _, c := range []struct {
		passes time.Duration
		purged int
		left   int
	}{{30 * day, 0, 3}, {time.Microsecond, 1, 2}, {7*day - time.Microsecond, 0, 2}, {time.Microsecond, 1, 1},
		{200 * day, 0, 1}} {
		f.clock.Pass(c.passes)
		f.equal("listed", len(f.invitations()), c.left)
		purged, err := f.store.Upkeep().Purge(f.ctx, &souvenir.PurgeOptions{TrustClock: true})
		f.check("Purge", err)
		f.equal("purged", purged, souvenir.PurgeReport{Invitations: c.purged})
		f.equal("listed after it", len(f.invitations()), c.left)
	}
	f.invited(waits)
	f.uninvited("that has expired long ago", expires.Value, "unknown")
}

func invitationsReadOnly(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "boss", Role: souvenir.RoleAdmin})
	added := f.invite(souvenir.NewInvitation{})
	options := f.options(f.embedder)
	options.ReadOnly = true
	view := *f
	view.reader = f.open(f.T, options)
	view.invited(added)
	_, err := view.reader.Accounts().AcceptInvitation(f.ctx,
		souvenir.InvitationAcceptance{Value: added.Value, Name: "ann", Password: password})
	f.fails("AcceptInvitation", err, souvenir.ErrReadOnly)
	_, err = view.reader.Accounts().AddInvitation(f.ctx, souvenir.NewInvitation{})
	f.fails("AddInvitation", err, souvenir.ErrReadOnly)
}
