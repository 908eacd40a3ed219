package storetest

import (
	"cmp"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func users() concept {
	return concept{"Users", []promise{
		{"an added user is found by id and by any way of writing the name", usersFound},
		{"a name belongs to one user, however it is written", usersNames},
		{"names that deceive are refused", usersNamesRefused},
		{"errors name what is wrong with a new user", usersRefused},
		{"an id with memories and no account gets the account", usersAdopt},
		{"a change changes what it names and nothing else", usersUpdate},
		{"the last admin stays one", usersLastAdmin},
		{"of two admins who demote each other concurrently, one stays", usersLastAdminRace},
		{"of two concurrent additions of one name, one succeeds", usersAddRace},
		{"disabling ends tokens for good, and enabling lets in again", usersDisable},
		{"a deleted user's things go, and others' stay", usersDelete},
		{"a user with memories is not deleted by accident", usersDeleteRefused},
		{"a view knows whose it is", usersMe},
		{"a page of users has the matching ones, in order", usersPaged},
	}}
}

const password = "correct horse battery"

func (f *fixture) addUser(n souvenir.NewUser) souvenir.User {
	f.Helper()
	u, err := f.store.Accounts().AddUser(f.ctx, n)
	f.check("AddUser "+n.Name, err)
	return u
}

func (f *fixture) getUser(idOrName string) souvenir.User {
	f.Helper()
	u, err := f.reader.Accounts().GetUser(f.ctx, idOrName)
	f.check("GetUser "+idOrName, err)
	return u
}

func (f *fixture) updateUser(idOrName string, u souvenir.UserUpdate) souvenir.User {
	f.Helper()
	updated, err := f.store.Accounts().UpdateUser(f.ctx, idOrName, u)
	f.check("UpdateUser "+idOrName, err)
	return updated
}

func (f *fixture) users() []string {
	f.Helper()
	var names []string
	for u, err := range f.reader.Accounts().Users(f.ctx) {
		f.check("Users", err)
		names = append(names, u.Name+"="+u.ID)
	}
	return names
}

func pointer[T any](value T) *T { return &value }

func usersFound(f *fixture) {
	added := f.addUser(souvenir.NewUser{Name: "Zoë Ång", Email: "zoe@example.com"})
	want := souvenir.User{ID: added.ID, Name: "Zoë Ång", Email: "zoe@example.com", Role: souvenir.RoleUser,
		CreatedAt: f.clock.Now()}
	f.equal("added", added, want)
	for _, by := range []string{added.ID, "Zoë Ång", "zoë ång", "ZOË  ÅNG ", "Zoe\u0308 A\u030ang", "ＺＯË ång",
		"Z\u200bo\u00adë Ång"} {
		f.equal("found by "+by, f.getUser(by), want)
	}
	for _, by := range []string{"", "zoe ang", "Zoë", "%", "Zoë %ng", "zo_ ång", "' OR 1=1 --", "a\xff", "noah",
		strings.Repeat("z", 1<<20)} {
		_, err := f.reader.Accounts().GetUser(f.ctx, by)
		f.failsAt("GetUser of "+brief(by), err, souvenir.ErrNotFound, "user")
	}
	straße := f.addUser(souvenir.NewUser{ID: "u-1", Name: "Straße", Role: souvenir.RoleAdmin, Password: password})
	f.equal("with everything", straße,
		souvenir.User{ID: "u-1", Name: "Straße", Role: souvenir.RoleAdmin, HasPassword: true, CreatedAt: f.clock.Now()})
	f.equal("folded", f.getUser("STRASSE"), straße)
	same(f, "all, by name", f.users(), []string{"Straße=u-1", "Zoë Ång=" + added.ID})
}

func usersNames(f *fixture) {
	ann := f.addUser(souvenir.NewUser{Name: "Ann"})
	f.addUser(souvenir.NewUser{ID: "Bob-1", Name: "bob"})
	f.as(souvenir.Access{User: "Carl"}).addTexts("of a user without an account")
	for name, says := range map[string]string{
		"ANN": "Ann", "ａｎｎ": "Ann", " ann ": "Ann", "bob-1": "Bob-1", "BOB-1": "Bob-1", "carl": "Carl",
		strings.ToUpper(ann.ID): ann.ID,
	} {
		_, err := f.store.Accounts().AddUser(f.ctx, souvenir.NewUser{Name: name})
		f.failsAt("AddUser "+name, err, souvenir.ErrConflict, "name", says)
		_, err = f.store.Accounts().UpdateUser(f.ctx, "bob", souvenir.UserUpdate{Name: &name})
		if strings.EqualFold(name, "Bob-1") {
			f.check("one's own id as one's name", err)
			f.updateUser("Bob-1", souvenir.UserUpdate{Name: pointer("bob")})
			continue
		}
		f.failsAt("UpdateUser to "+name, err, souvenir.ErrConflict, "name", says)
	}
	_, err := f.store.Accounts().AddUser(f.ctx, souvenir.NewUser{ID: "ANN", Name: "other"})
	f.failsAt("AddUser with a name as its id", err, souvenir.ErrConflict, "id", `"ANN"`)
	_, err = f.store.Accounts().AddUser(f.ctx, souvenir.NewUser{ID: ann.ID, Name: "other"})
	f.failsAt("AddUser with an id that has an account", err, souvenir.ErrConflict, "id", ann.ID)
	f.equal("a name that is its own id", f.addUser(souvenir.NewUser{ID: "dora", Name: "Dora"}).Name, "Dora")
	f.equal("another way of writing the own name", f.updateUser("dora", souvenir.UserUpdate{Name: pointer("DORA")}).Name,
		"DORA")
	f.equal("a name with marks is another one", f.addUser(souvenir.NewUser{Name: "Änn"}).Name, "Änn")
	same(f, "all", []string{f.users()[0], f.users()[4]}, []string{"Ann=" + ann.ID, "=Carl"})
}

func usersNamesRefused(f *fixture) {
	for name, says := range map[string]string{
		"": "1 to 64", " ": "1 to 64", "a/b": "slash", "a\nb": "U+000A", "a\x00b": "U+0000", "a\xff": "UTF-8",
		"ann\u200b": "U+200B", "a\u202enn": "U+202E",
		"a\u00adnn": "U+00AD", "ann\ufe0f": "U+FE0F", "аnn": "Latin and Cyrillic", "Αnn": "Latin and Greek",
		"\u3164": "U+3164",
	} {
		_, err := f.store.Accounts().AddUser(f.ctx, souvenir.NewUser{Name: name})
		f.failsAt("AddUser "+brief(name), err, souvenir.ErrInvalid, "name", says)
	}
	_, err := f.store.Accounts().AddUser(f.ctx, souvenir.NewUser{Name: strings.Repeat("ä", 65)})
	f.failsAt("AddUser of a long name", err, souvenir.ErrTooLarge, "name", "65", "64")
	for _, name := range []string{strings.Repeat("ä", 64), "Анна", "Άννα", "山田太郎", "Ann Иванова", "ann@example.com", "عمر",
		"O'Neill; DROP TABLE user"} {
		f.equal("name", f.getUser(f.addUser(souvenir.NewUser{Name: name}).ID).Name, name)
	}
	f.equal("spaces at the ends are dropped", f.addUser(souvenir.NewUser{Name: "  two   words "}).Name, "two words")
}

func usersRefused(f *fixture) {
	for _, c := range []struct {
		user     souvenir.NewUser
		kind     *souvenir.Error
		argument string
		says     string
	}{
		{souvenir.NewUser{Name: "a", ID: " "}, souvenir.ErrInvalid, "id", "1 to 128"},
		{souvenir.NewUser{Name: "a", ID: strings.Repeat("x", 129)}, souvenir.ErrTooLarge, "id", "128"},
		{souvenir.NewUser{Name: "a", Role: "root"}, souvenir.ErrInvalid, "role", `"user" or "admin"`},
		{souvenir.NewUser{Name: "a", Email: "noah"}, souvenir.ErrInvalid, "email", `"noah"`},
		{souvenir.NewUser{Name: "a", Email: "a@b\nBcc: c@d"}, souvenir.ErrInvalid, "email", "U+000A"},
		{souvenir.NewUser{Name: "a", Email: "Ann <ann@example.com>"}, souvenir.ErrInvalid, "email", "example.com"},
		{souvenir.NewUser{Name: "a", Email: strings.Repeat("a", 251) + "@b.c"}, souvenir.ErrTooLarge, "email", "254"},
	} {
		_, err := f.store.Accounts().AddUser(f.ctx, c.user)
		f.failsAt("AddUser "+brief(c.user), err, c.kind, c.argument, c.says)
	}
	same(f, "users", f.users(), nil)
	_, err := f.store.Accounts().UpdateUser(f.ctx, "noah", souvenir.UserUpdate{Email: pointer("a@b.c")})
	f.failsAt("UpdateUser of an unknown user", err, souvenir.ErrNotFound, "user", `"noah"`)
	_, err = f.store.Accounts().UpdateUser(f.ctx, "noah", souvenir.UserUpdate{Password: pointer(password)})
	f.failsAt("a password for an unknown user", err, souvenir.ErrNotFound, "user", `"noah"`)
	f.addTexts("of the local user")
	_, err = f.store.Accounts().UpdateUser(f.ctx, souvenir.LocalUser,
		souvenir.UserUpdate{Role: pointer(souvenir.RoleAdmin)})
	f.failsAt("UpdateUser of one without an account", err, souvenir.ErrConflict, "user", `"local"`)
	f.failsAt("DeleteUser of an unknown user", f.store.Accounts().DeleteUser(f.ctx, "noah", nil),
		souvenir.ErrNotFound, "user", `"noah"`)
}

func usersAdopt(f *fixture) {
	f.addTexts("of the local user")
	same(f, "before", f.users(), []string{"=local"})
	began := f.getUser(souvenir.LocalUser)
	f.clock.Pass(time.Hour)
	ann := f.addUser(souvenir.NewUser{ID: souvenir.LocalUser, Name: "Ann", Password: password})
	f.equal("the account", ann, souvenir.User{ID: "local", Name: "Ann", Role: souvenir.RoleUser, HasPassword: true,
		CreatedAt: began.CreatedAt})
	f.equal("by name", f.getUser("ann"), ann)
	f.equal("her memories", len(f.as(souvenir.Access{User: ann.ID}).find("local")), 1)
}

func usersUpdate(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "Boss", Role: souvenir.RoleAdmin})
	ann := f.addUser(souvenir.NewUser{Name: "Ann", Email: "ann@example.com"})
	f.clock.Pass(time.Hour)
	f.equal("nothing", f.updateUser("ann", souvenir.UserUpdate{}), ann)
	ann.Name = "Anna"
	f.equal("the name", f.updateUser("Ann", souvenir.UserUpdate{Name: pointer("Anna")}), ann)
	ann.Email = ""
	f.equal("no address", f.updateUser(ann.ID, souvenir.UserUpdate{Email: pointer("")}), ann)
	ann.Role, ann.HasPassword = souvenir.RoleAdmin, true
	f.equal("role and password", f.updateUser("anna",
		souvenir.UserUpdate{Role: pointer(souvenir.RoleAdmin), Password: pointer(password)}), ann)
	f.equal("read", f.getUser(ann.ID), ann)
	f.equal("signed in", f.signIn("ANNA", password), ann)
	ann.HasPassword = false
	f.equal("no password", f.updateUser("anna", souvenir.UserUpdate{Password: pointer("")}), ann)
	f.signInFails("anna", password)
	for _, c := range []struct {
		update   souvenir.UserUpdate
		argument string
	}{
		{souvenir.UserUpdate{Name: pointer("")}, "name"}, {souvenir.UserUpdate{Email: pointer("x")}, "email"},
		{souvenir.UserUpdate{Role: pointer(souvenir.Role(""))}, "role"},
		{souvenir.UserUpdate{Role: pointer(souvenir.Role("king"))}, "role"},
		{souvenir.UserUpdate{Password: pointer("short")}, "password"},
		{souvenir.UserUpdate{Name: pointer("new name"), Password: pointer("NEW NAME")}, "password"},
	} {
		_, err := f.store.Accounts().UpdateUser(f.ctx, "anna", c.update)
		f.failsAt("UpdateUser "+brief(c.update), err, souvenir.ErrInvalid, c.argument)
	}
	f.equal("after all refusals", f.getUser(ann.ID), ann)
}

func usersLastAdmin(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "user"})
	f.addUser(souvenir.NewUser{Name: "first", Role: souvenir.RoleAdmin})
	refused := func() {
		f.Helper()
		for what, u := range map[string]souvenir.UserUpdate{
			"disabled": {Disabled: pointer(true)}, "demoted": {Role: pointer(souvenir.RoleUser)},
			"both": {Role: pointer(souvenir.RoleUser), Disabled: pointer(true)},
		} {
			_, err := f.store.Accounts().UpdateUser(f.ctx, "first", u)
			f.failsAt("the last admin "+what, err, souvenir.ErrConflict, "user", `"first"`)
		}
		f.failsAt("the last admin deleted",
			f.store.Accounts().DeleteUser(f.ctx, "first", &souvenir.DeletionOptions{WithMemories: true}), souvenir.ErrConflict,
			"user", `"first"`)
		u := f.getUser("first")
		f.equal("still there", []any{u.Role, u.Disabled}, []any{souvenir.RoleAdmin, false})
	}
	refused()
	f.updateUser("user", souvenir.UserUpdate{Role: pointer(souvenir.RoleAdmin), Disabled: pointer(true)})
	refused() // a disabled one does not count
	f.updateUser("user", souvenir.UserUpdate{Disabled: pointer(false)})
	f.updateUser("first", souvenir.UserUpdate{Role: pointer(souvenir.RoleUser)})
	f.updateUser("first", souvenir.UserUpdate{Role: pointer(souvenir.RoleAdmin), Name: pointer("first")})
	f.check("DeleteUser", f.store.Accounts().DeleteUser(f.ctx, "user", nil))
	refused()
}

func usersLastAdminRace(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "one", Role: souvenir.RoleAdmin})
	f.addUser(souvenir.NewUser{Name: "two", Role: souvenir.RoleAdmin})
	var refused atomic.Int64
	together(func(worker int) {
		store, target := f.store, "one"
		if worker%2 == 1 {
			store, target = f.reader, "two"
		}
		var err error
		switch worker / 2 % 3 {
		case 0:
			_, err = store.Accounts().UpdateUser(f.ctx, target, souvenir.UserUpdate{Role: pointer(souvenir.RoleUser)})
		case 1:
			_, err = store.Accounts().UpdateUser(f.ctx, target, souvenir.UserUpdate{Disabled: pointer(true)})
		case 2:
			err = store.Accounts().DeleteUser(f.ctx, target, nil)
		}
		if errors.Is(err, souvenir.ErrConflict) {
			refused.Add(1)
		} else if err != nil && !errors.Is(err, souvenir.ErrNotFound) {
			f.Errorf("got %v, want success, ErrConflict or ErrNotFound", err)
		}
	})
	admins := 0
	for u, err := range f.reader.Accounts().Users(f.ctx) {
		f.check("Users", err)
		if u.Role == souvenir.RoleAdmin && !u.Disabled {
			admins++
		}
	}
	f.equal("admins left", admins, 1)
	if refused.Load() == 0 {
		f.Errorf("got no refusal, want one")
	}
}

func usersAddRace(f *fixture) {
	var added, taken atomic.Int64
	together(func(worker int) {
		store := f.store
		if worker%2 == 1 {
			store = f.reader
		}
		_, err := store.Accounts().AddUser(f.ctx, souvenir.NewUser{Name: []string{"ann", "ANN", "Ann"}[worker%3]})
		switch {
		case err == nil:
			added.Add(1)
		case errors.Is(err, souvenir.ErrConflict):
			taken.Add(1)
		default:
			f.Errorf("AddUser: %v", err)
		}
	})
	f.equal("added and refused", []int64{added.Load(), taken.Load()}, []int64{1, workers - 1})
	f.equal("users", len(f.users()), 1)
}

func usersDisable(f *fixture) {
	f.addUser(souvenir.NewUser{Name: "ann", Password: password})
	ben := f.addUser(souvenir.NewUser{Name: "ben"})
	before, others := f.addToken(souvenir.NewToken{Name: "laptop", User: "ann"}),
		f.addToken(souvenir.NewToken{Name: "laptop", User: "ben"})
	f.link(souvenir.NewIdentity{User: "ann", Issuer: "https://id.example", Subject: "1"})
	if u := f.updateUser("ann", souvenir.UserUpdate{Disabled: pointer(true)}); !u.Disabled {
		f.Errorf("got %+v, want it disabled", u)
	}
	f.tokenFails("of a disabled user", before.Value)
	f.signInFails("ann", password)
	_, err := f.reader.Accounts().GetUserByIdentity(f.ctx, "https://id.example", "1")
	f.fails("GetUserByIdentity of a disabled user", err, souvenir.ErrUnauthenticated)
	_, err = f.store.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "more", User: "ann"})
	f.failsAt("AddToken for a disabled user", err, souvenir.ErrForbidden, "user")
	f.equal("another's token", f.principal(others.Value).User, ben)
	f.updateUser("ann", souvenir.UserUpdate{Disabled: pointer(false)})
	f.tokenFails("of a user who was disabled", before.Value)
	f.signIn("ann", password)
	f.principal(f.addToken(souvenir.NewToken{Name: "new", User: "ann"}).Value)
}

func usersDelete(f *fixture) {
	f.addUser(souvenir.NewUser{ID: "ann-id", Name: "ann", Email: "ann@example.com", Password: password})
	f.addUser(souvenir.NewUser{ID: "ben-id", Name: "ben"})
	ann, ben := f.as(souvenir.Access{User: "ann-id"}), f.as(souvenir.Access{User: "ben-id"})
	gone := ann.add(souvenir.NewMemory{Content: "hers", ProjectID: "apollo", Tags: []string{"hers"}}).ID
	ann.addTexts("hers, too")
	stays := ben.add(souvenir.NewMemory{Content: "his", ProjectID: "apollo"}).ID
	token := f.addToken(souvenir.NewToken{Name: "laptop", User: "ann"})
	f.link(souvenir.NewIdentity{User: "ann", Issuer: "https://id.example", Subject: "1"})
	_, err := ann.store.SetPreferences(f.ctx, map[string]any{"theme": "dark"})
	f.check("SetPreferences", err)

	f.check("DeleteUser", f.store.Accounts().DeleteUser(f.ctx, "ANN", &souvenir.DeletionOptions{WithMemories: true}))
	same(f, "users", f.users(), []string{"ben=ben-id"})
	for _, by := range []string{"ann", "ann-id"} {
		_, err = f.reader.Accounts().GetUser(f.ctx, by)
		f.fails("GetUser "+by, err, souvenir.ErrNotFound)
	}
	f.tokenFails("of a deleted user", token.Value)
	f.signInFails("ann", password)
	_, err = f.reader.Accounts().GetUserByIdentity(f.ctx, "https://id.example", "1")
	f.fails("GetUserByIdentity", err, souvenir.ErrNotFound)
	_, err = ann.reader.GetMemory(f.ctx, gone)
	f.fails("GetMemory", err, souvenir.ErrNotFound)
	f.equal("found", len(ann.find("hers")), 0)
	f.equal("his", ben.get(stays).Content, "his")
	_, err = ann.store.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "late"})
	f.fails("AddToken by a call that comes late", err, souvenir.ErrForbidden)
	preferences, err := ann.reader.GetPreferences(f.ctx)
	f.check("GetPreferences", err)
	f.equal("preferences", preferences, map[string]any{})

	f.addUser(souvenir.NewUser{ID: "ann-id", Name: "ann"})
	f.equal("the same again has nothing", len(ann.list(souvenir.MemoryList{})), 0)
	f.principal(f.addToken(souvenir.NewToken{Name: "laptop", User: "ann"}).Value)
	f.equal("a new memory", len(f.as(souvenir.Access{User: "ann-id"}).addTexts("new")), 1)
}

func usersDeleteRefused(f *fixture) {
	f.addUser(souvenir.NewUser{ID: "ann-id", Name: "ann"})
	ann := f.as(souvenir.Access{User: "ann-id"})
	id := ann.add(souvenir.NewMemory{Content: "hers", ProjectID: "apollo"}).ID
	f.failsAt("DeleteUser with memories", f.store.Accounts().DeleteUser(f.ctx, "ann", nil),
		souvenir.ErrConflict, "user", "1 memory", "1 project", "together")
	f.equal("her memory", ann.get(id).Content, "hers")
	f.addUser(souvenir.NewUser{Name: "ben"})
	f.check("DeleteUser without memories", f.store.Accounts().DeleteUser(f.ctx, "ben", nil))
	same(f, "users", f.users(), []string{"ann=ann-id"})
}

func usersMe(f *fixture) {
	me := func(a souvenir.Access) souvenir.User {
		f.Helper()
		u, err := f.reader.As(a).Accounts().Me(f.ctx)
		f.check("Me", err)
		return u
	}
	f.equal("a new user", me(souvenir.Access{User: "noah"}), souvenir.User{ID: "noah", Role: souvenir.RoleUser})
	own, err := f.reader.Accounts().Me(f.ctx)
	f.check("Me", err)
	f.equal("no user given", own.ID, souvenir.LocalUser)
	ann := f.addUser(souvenir.NewUser{Name: "ann", Email: "ann@example.com", Role: souvenir.RoleAdmin})
	f.equal("her", me(souvenir.Access{User: ann.ID}), ann)
	f.equal("her, for reading only", me(souvenir.Access{User: ann.ID, ReadOnly: true}), ann)
	ann.Email = ""
	f.equal("her, for a project", me(souvenir.Access{User: ann.ID, Projects: []string{"apollo"}}), ann)
}

// usersPaged checks that pages have the users that match a query, in the order of the whole list.
func usersPaged(f *fixture) {
	for name, email := range map[string]string{"Cem": "c", "ann": "a", "Béa": "b", "b_b": "b", "dan": "DÄ"} {
		f.addUser(souvenir.NewUser{Name: name, Email: email + "@Example.com"})
	}
	f.as(souvenir.Access{User: "zz"}).add(souvenir.NewMemory{Content: "stored without an account"})
	for _, c := range []struct {
		q     souvenir.UserQuery
		names string
		total int
	}{
		{souvenir.UserQuery{}, "ann b_b Béa Cem dan zz", 6},
		{souvenir.UserQuery{Accounts: true}, "ann b_b Béa Cem dan", 5},
		{souvenir.UserQuery{Limit: 2}, "ann b_b", 6},
		{souvenir.UserQuery{Limit: 2, Offset: 4}, "dan zz", 6},
		{souvenir.UserQuery{Accounts: true, Limit: 3, Offset: 3}, "Cem dan", 5},
		{souvenir.UserQuery{Offset: 9}, "", 6},
		{souvenir.UserQuery{Text: "AN"}, "ann dan", 2},
		{souvenir.UserQuery{Text: "ＢÉ"}, "Béa", 1},
		{souvenir.UserQuery{Text: "_"}, "b_b", 1},
		{souvenir.UserQuery{Text: "%"}, "", 0},
		{souvenir.UserQuery{Text: `\`}, "", 0},
		{souvenir.UserQuery{Text: "C@exam"}, "Cem", 1},
		{souvenir.UserQuery{Text: "dÄ@exam"}, "dan", 1},
		{souvenir.UserQuery{Text: "zz"}, "zz", 1},
		{souvenir.UserQuery{Text: "zz", Accounts: true}, "", 0},
	} {
		page, err := f.reader.Accounts().UserPage(f.ctx, c.q)
		f.check("UserPage "+brief(c.q), err)
		var names []string
		for _, u := range page.Users {
			names = append(names, cmp.Or(u.Name, u.ID))
		}
		f.equal("found by "+brief(c.q), strings.Join(names, " "), c.names)
		f.equal("in all by "+brief(c.q), page.Total, c.total)
	}
	for argument, q := range map[string]souvenir.UserQuery{
		"limit": {Limit: 1001}, "offset": {Offset: -1}, "text": {Text: "a\xff"},
	} {
		_, err := f.reader.Accounts().UserPage(f.ctx, q)
		f.failsAt("UserPage", err, souvenir.ErrInvalid, argument)
	}
}
