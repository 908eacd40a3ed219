package storetest

import (
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func passwords() concept {
	return concept{"Passwords", []promise{
		{"the right name and password sign in, and every other pair is refused alike", passwordsChecked},
		{"are the same however their characters are written", passwordsNormalised},
		{"bad ones are refused without being told", passwordsRefused},
		{"are changed by who knows the old one", passwordsChanged},
	}}
}

func identities() concept {
	return concept{"Identities", []promise{
		{"an identity signs its user in", identitiesLinked},
		{"an identity belongs to one user, whom errors do not name", identitiesTaken},
		{"a user's view manages the own ones only", identitiesOwn},
		{"the last way to sign in stays", identitiesLast},
		{"errors name what is wrong with an identity", identitiesRefused},
	}}
}

func (f *fixture) signIn(name, password string) souvenir.User {
	f.Helper()
	u, err := f.reader.Accounts().CheckPassword(f.ctx, souvenir.Credentials{Name: name, Password: password})
	f.check("CheckPassword of "+name, err)
	return u
}

func (f *fixture) signInFails(name, password string) {
	f.Helper()
	u, err := f.reader.Accounts().CheckPassword(f.ctx, souvenir.Credentials{Name: name, Password: password})
	f.failsAt("CheckPassword of "+brief(name), err, souvenir.ErrUnauthenticated, "")
	if err != nil && err.Error() != "name or password is wrong" || u.ID != "" {
		f.Errorf("CheckPassword of %s says more than it may: %+v, %v; want ID \"\"", brief(name), u, err)
	}
}

func passwordsChecked(f *fixture) {
	ann := f.addUser(souvenir.NewUser{Name: "Ann", Password: password})
	f.addUser(souvenir.NewUser{Name: "nopass"})
	f.equal("signed in", f.signIn("Ann", password), ann)
	f.equal("signed in", f.signIn("ANN ", password), ann)
	for i, c := range [][2]string{
		{"Ann", password + "x"}, {"Ann", ""}, {"Ann", "a\xff"}, {"Ann", strings.Repeat("x", 1<<20)}, {"", ""}, {"", password},
		{"noah", password}, {"nopass", ""}, {"nopass", password}, {ann.ID, password}, {"An_", password},
		{strings.Repeat("a", 1<<20), password}, {"a\xff", password},
	} {
		if longtest.Part(i, 1, 4) {
			f.signInFails(c[0], c[1])
		}
	}
}

func passwordsNormalised(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "ann", Password: "ÅngstrÖm\u00a0 müde"})
	f.signIn("ann", "A\u030angstrO\u0308m  mu\u0308de")
	f.signInFails("ann", "ångström  müde")
	f.signInFails("ann", "Angstrom  mude")
}

func passwordsRefused(f *fixture) {
	for _, c := range []struct {
		password string
		kind     *souvenir.Error
		says     string
	}{
		{"1234567", souvenir.ErrInvalid, "8 characters"}, {"ääääääa", souvenir.ErrInvalid, "8 characters"},
		{"secretword\x00", souvenir.ErrInvalid, "control"},
		{"secretword\n", souvenir.ErrInvalid, "control"}, {"secretword\xff", souvenir.ErrInvalid, "UTF-8"},
		{"secretword name", souvenir.ErrInvalid, "the user's name"},
		{"Secretword Name 1!", souvenir.ErrInvalid, "easy to guess"},
		{"secretsecretsecret", souvenir.ErrInvalid, "easy to guess"},
		{strings.Repeat("secretword", 103), souvenir.ErrTooLarge, "1024"},
		{strings.Repeat("secretword", 1<<17), souvenir.ErrTooLarge, "1024"},
	} {
		_, err := f.store.Accounts().AddUser(f.ctx, souvenir.NewUser{Name: "Secretword  Name", Password: c.password})
		f.failsAt("AddUser", err, c.kind, "password", c.says)
		if err != nil && strings.Contains(err.Error(), "secretword") {
			f.Errorf("the error contains the password: %v, want none in it", err)
		}
	}
	same(f, "users", f.users(), nil)
	long := strings.Repeat("long ", 204) + "word"
	f.addUser(souvenir.NewUser{Name: "ann", Password: long})
	f.signIn("ann", long)
}

func passwordsChanged(f *fixture) {
	ann, ben := f.addUser(souvenir.NewUser{Name: "ann", Password: password}), f.addUser(souvenir.NewUser{Name: "ben"})
	change := func(a souvenir.Access, old, fresh string) error {
		return f.store.As(a).Accounts().ChangePassword(f.ctx, souvenir.PasswordChange{Old: old, New: fresh})
	}
	hers := souvenir.Access{User: ann.ID}
	for _, old := range []string{"", "wrong password"} {
		f.failsAt("ChangePassword with "+old, change(hers, old, "another password"), souvenir.ErrUnauthenticated,
			"old_password")
	}
	f.failsAt("ChangePassword to a bad one", change(hers, password, "short"), souvenir.ErrInvalid, "new_password")
	f.failsAt("ChangePassword to the name", change(souvenir.Access{User: ben.ID}, "", "ben"), souvenir.ErrInvalid,
		"new_password")
	f.fails("ChangePassword for reading only",
		change(souvenir.Access{User: ann.ID, ReadOnly: true}, password, "another password"), souvenir.ErrReadOnly)
	f.fails("ChangePassword for a project",
		change(souvenir.Access{User: ann.ID, Projects: []string{"p"}}, password, "another password"), souvenir.ErrForbidden)
	f.fails("ChangePassword without an account", change(souvenir.Access{User: "carl"}, "", "another password"),
		souvenir.ErrConflict)
	f.signIn("ann", password)
	f.check("ChangePassword", change(hers, password, "another password"))
	f.signIn("ann", "another password")
	f.signInFails("ann", password)
	f.check("a first password", change(souvenir.Access{User: ben.ID}, "", password))
	f.signIn("ben", password)
}

func (f *fixture) link(n souvenir.NewIdentity) souvenir.Identity {
	f.Helper()
	linked, err := f.store.Accounts().LinkIdentity(f.ctx, n)
	f.check("LinkIdentity "+n.Subject, err)
	return linked
}

func (f *fixture) identities(user string) []souvenir.Identity {
	f.Helper()
	all, err := f.reader.Accounts().Identities(f.ctx, user)
	f.check("Identities of "+user, err)
	return all
}

const provider = "https://id.example"

func identitiesLinked(f *fixture) {
	ann := f.addUser(souvenir.NewUser{Name: "ann"})
	same(f, "none", f.identities("ann"), nil)
	linked := f.link(souvenir.NewIdentity{User: "Ann", Issuer: provider, Subject: "248289761001", Email: "ann@id.example"})
	f.equal("linked", linked, souvenir.Identity{Issuer: provider, Subject: "248289761001", Email: "ann@id.example",
		CreatedAt: f.clock.Now()})
	u, err := f.reader.Accounts().GetUserByIdentity(f.ctx, provider, "248289761001")
	f.check("GetUserByIdentity", err)
	f.equal("the user", u, ann)
	linked.Email = "new@id.example"
	f.equal("linked again", f.link(souvenir.NewIdentity{User: ann.ID, Issuer: provider, Subject: "248289761001",
		Email: "new@id.example"}), linked)
	f.equal("listed", f.identities("ann"), []souvenir.Identity{linked})
	for _, i := range [][2]string{{provider, "248289761002"}, {provider + "/", "248289761001"},
		{"HTTPS://id.example", "248289761001"}, {provider, "%"}} {
		_, err := f.reader.Accounts().GetUserByIdentity(f.ctx, i[0], i[1])
		f.failsAt("GetUserByIdentity of another", err, souvenir.ErrNotFound, "subject")
	}
	f.check("UnlinkIdentity", f.store.Accounts().UnlinkIdentity(f.ctx,
		"ann", provider, "248289761001"))
	_, err = f.reader.Accounts().GetUserByIdentity(f.ctx, provider, "248289761001")
	f.fails("GetUserByIdentity after it", err, souvenir.ErrNotFound)
}

func identitiesTaken(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "annabel"})
	ben := f.addUser(souvenir.NewUser{Name: "ben"})
	f.link(souvenir.NewIdentity{User: "annabel", Issuer: provider, Subject: "1"})
	_, err := f.store.As(souvenir.Access{User: ben.ID}).Accounts().LinkIdentity(f.ctx,
		souvenir.NewIdentity{Issuer: provider, Subject: "1", Email: "ben@id.example"})
	f.failsAt("LinkIdentity of another's", err, souvenir.ErrConflict, "subject")
	if err != nil && strings.Contains(err.Error(), "annabel") {
		f.Errorf("the error names the owner: %v, want no name in it", err)
	}
	f.equal("her address", f.identities("annabel")[0].Email, "")
	same(f, "his", f.identities("ben"), nil)
}

func identitiesOwn(f *fixture) {
	ann, ben := f.addUser(souvenir.NewUser{Name: "Ann"}), f.addUser(souvenir.NewUser{Name: "ben"})
	f.link(souvenir.NewIdentity{User: "ben", Issuer: provider, Subject: "ben"})
	hers := f.store.As(souvenir.Access{User: ann.ID})
	for i, user := range []string{"", ann.ID, "ann"} {
		_, err := hers.Accounts().LinkIdentity(f.ctx,
			souvenir.NewIdentity{User: user, Issuer: provider, Subject: strings.Repeat("s", i+1)})
		f.check("LinkIdentity of oneself", err)
		all, err := hers.Accounts().Identities(f.ctx, user)
		f.check("Identities of oneself", err)
		f.equal("identities", len(all), i+1)
	}
	for _, user := range []string{"ben", ben.ID, "noah"} {
		_, err := hers.Accounts().LinkIdentity(f.ctx, souvenir.NewIdentity{User: user, Issuer: provider, Subject: "x"})
		f.failsAt("LinkIdentity for another", err, souvenir.ErrForbidden, "user")
		_, err = hers.Accounts().Identities(f.ctx, user)
		f.failsAt("Identities of another", err, souvenir.ErrForbidden, "user")
		f.failsAt("UnlinkIdentity of another",
			hers.Accounts().UnlinkIdentity(f.ctx, user, provider, "ben"),
			souvenir.ErrForbidden, "user")
	}
	f.failsAt("UnlinkIdentity of another's",
		hers.Accounts().UnlinkIdentity(f.ctx, "", provider, "ben"), souvenir.ErrNotFound,
		"subject")
	f.equal("his", len(f.identities("ben")), 1)
}

func identitiesLast(f *fixture) {
	ann := f.addUser(souvenir.NewUser{Name: "ann"})
	hers := f.store.As(souvenir.Access{User: ann.ID})
	for _, subject := range []string{"1", "2"} {
		f.link(souvenir.NewIdentity{User: "ann", Issuer: provider, Subject: subject})
	}
	unlink := func(s *souvenir.Store, subject string) error {
		return s.Accounts().UnlinkIdentity(f.ctx, "ann", provider, subject)
	}
	f.check("the first of two", unlink(hers, "1"))
	f.failsAt("the last one", unlink(hers, "2"), souvenir.ErrConflict, "subject", "only way")
	f.equal("left", len(f.identities("ann")), 1)
	f.check("ChangePassword", hers.Accounts().ChangePassword(f.ctx, souvenir.PasswordChange{New: password}))
	f.check("the last one beside a password", unlink(hers, "2"))
	f.updateUser("ann", souvenir.UserUpdate{Password: pointer("")})
	f.link(souvenir.NewIdentity{User: "ann", Issuer: provider, Subject: "3"})
	f.check("the last one, by the operator", unlink(f.store, "3"))
}

func identitiesRefused(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "ann"})
	for _, c := range []struct {
		identity souvenir.NewIdentity
		kind     *souvenir.Error
		argument string
	}{
		{souvenir.NewIdentity{User: "ann", Subject: "1"}, souvenir.ErrInvalid, "issuer"},
		{souvenir.NewIdentity{User: "ann", Issuer: provider}, souvenir.ErrInvalid, "subject"},
		{souvenir.NewIdentity{User: "ann", Issuer: strings.Repeat("x", 513), Subject: "1"}, souvenir.ErrTooLarge, "issuer"},
		{souvenir.NewIdentity{User: "ann", Issuer: provider, Subject: strings.Repeat("x", 256)}, souvenir.ErrTooLarge,
			"subject"},
		{souvenir.NewIdentity{User: "ann", Issuer: provider, Subject: "a\x00"}, souvenir.ErrInvalid, "subject"},
		{souvenir.NewIdentity{User: "ann", Issuer: provider, Subject: "1", Email: "x"}, souvenir.ErrInvalid, "email"},
		{souvenir.NewIdentity{User: "noah", Issuer: provider, Subject: "1"}, souvenir.ErrNotFound, "user"},
		{souvenir.NewIdentity{Issuer: provider, Subject: "1"}, souvenir.ErrConflict, "user"}, // the local user has no account
	} {
		_, err := f.store.Accounts().LinkIdentity(f.ctx, c.identity)
		f.failsAt("LinkIdentity "+brief(c.identity), err, c.kind, c.argument)
	}
	_, err := f.reader.Accounts().GetUserByIdentity(f.ctx, "", "1")
	f.failsAt("GetUserByIdentity", err, souvenir.ErrInvalid, "issuer")
	f.failsAt("UnlinkIdentity", f.store.Accounts().UnlinkIdentity(f.ctx,
		"ann", provider, ""), souvenir.ErrInvalid, "subject")
	for i := range 33 {
		_, err := f.store.Accounts().LinkIdentity(f.ctx,
			souvenir.NewIdentity{User: "ann", Issuer: provider, Subject: strings.Repeat("s", i+1)})
		if i == 32 {
			f.failsAt("one identity too many", err, souvenir.ErrTooLarge, "user", "32")
		} else {
			f.check("LinkIdentity", err)
		}
	}
	f.equal("identities", len(f.identities("ann")), 32)
}
