package systemtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
)

// userVisits are the visits of the methods about people, tokens and preferences.
var userVisits = map[string]func(v visit){
	"AddUser": func(v visit) {
		v.operators("AddUser", func(s *Store, user string) (any, error) {
			return s.Accounts().AddUser(v.Context(), NewUser{ID: user, Name: "newcomer"})
		})
	},
	"Users": func(v visit) {
		v.operators("Users", func(s *Store, _ string) (any, error) {
			var all []User
			for u, err := range s.Accounts().Users(v.Context()) {
				if err != nil {
					return nil, err
				}
				all = append(all, u)
			}
			return all, nil
		})
	},
	"UserPage": func(v visit) {
		v.operators("UserPage", func(s *Store, _ string) (any, error) {
			return s.Accounts().UserPage(v.Context(), UserQuery{})
		})
	},
	"GetUser": func(v visit) {
		v.operators("GetUser", func(s *Store, user string) (any, error) { return s.Accounts().GetUser(v.Context(), user) })
	},
	"UpdateUser": func(v visit) {
		admin := RoleAdmin
		v.operators("UpdateUser", func(s *Store, user string) (any, error) {
			return s.Accounts().UpdateUser(v.Context(), user, UserUpdate{Role: &admin})
		})
	},
	"DeleteUser": func(v visit) {
		v.operators("DeleteUser", func(s *Store, user string) (any, error) {
			return nil, s.Accounts().DeleteUser(v.Context(), user, &DeletionOptions{WithMemories: true})
		})
	},
	"CheckPassword": func(v visit) {
		v.operators("CheckPassword", func(s *Store, user string) (any, error) {
			return s.Accounts().CheckPassword(v.Context(), Credentials{Name: user, Password: "guesswork"})
		})
	},
	"GetUserByIdentity": func(v visit) {
		v.operators("GetUserByIdentity", func(s *Store, user string) (any, error) {
			return s.Accounts().GetUserByIdentity(v.Context(), "https://id.example", user)
		})
	},
	"CheckToken": func(v visit) {
		added := v.give(v.access.User)
		v.operators("CheckToken", func(s *Store, _ string) (any,
			error) {
			return s.Accounts().CheckToken(v.Context(), added.Value)
		})
	},
	"AddSignIn": func(v visit) {
		v.operators("AddSignIn", func(s *Store, user string) (any, error) {
			return s.Accounts().AddSignIn(v.Context(), NewSignIn{User: user})
		})
	},
	"CheckSignIn": func(v visit) {
		v.haveAccounts()
		value := v.signIn(v.access.User).Value
		v.operators("CheckSignIn", func(s *Store, _ string) (any,
			error) {
			return s.Accounts().CheckSignIn(v.Context(), value)
		})
	},
	"CheckBrowser": func(v visit) {
		v.haveAccounts()
		mark := v.signIn(v.access.User).Mark
		v.operators("CheckBrowser", func(s *Store, user string) (any, error) {
			return nil, s.Accounts().CheckBrowser(v.Context(), BrowserCheck{User: user, Mark: mark})
		})
	},
	"HasAccounts": func(v visit) {
		v.operators("HasAccounts", func(s *Store, _ string) (any, error) { return s.Accounts().HasAccounts(v.Context()) })
	},
	"Namespaces": func(v visit) {
		v.operators("Namespaces", func(s *Store, _ string) (any, error) { return s.Accounts().Namespaces(v.Context()) })
	},
	"Namespace": func(v visit) { // only the operator reaches users of another application, even those with the same id
		in := v.view.Accounts().Namespace(nextDoor)
		for what, call := range map[string]func() (any, error){
			"GetUser":     func() (any, error) { return in.GetUser(v.Context(), v.access.User) },
			"Me":          func() (any, error) { return in.Me(v.Context()) },
			"AddUser":     func() (any, error) { return in.AddUser(v.Context(), NewUser{Name: "intruder"}) },
			"AddToken":    func() (any, error) { return in.AddToken(v.Context(), NewToken{Name: "intruder"}) },
			"UserPage":    func() (any, error) { return in.UserPage(v.Context(), UserQuery{}) },
			"BlockSender": func() (any, error) { return in.BlockSender(v.Context(), "x") },
		} {
			before := rowsOf(v.T, v.n.store)
			answer, err := call()
			v.check(what, answer, err)
			if !errors.Is(err, ErrForbidden) || rowsOf(v.T, v.n.store) != before {
				v.Errorf("%s of another namespace: got %v through a view, want ErrForbidden and nothing changed", what, err)
			}
		}
		if me, err := v.view.Accounts().Namespace("").Me(v.Context()); err != nil || me.ID != v.access.User {
			v.Errorf("Me of the view's own namespace: got %v, %v, want %s", me.ID, err, v.access.User)
		}
	},
	"AddInvitation": func(v visit) {
		v.operators("AddInvitation", func(s *Store, user string) (any, error) {
			return s.Accounts().AddInvitation(v.Context(), NewInvitation{Note: user + "."})
		})
	},
	"Invitations": func(v visit) {
		v.operators("Invitations", func(s *Store, _ string) (any, error) { return s.Accounts().Invitations(v.Context()) })
	},
	"RevokeInvitation": func(v visit) {
		invited := mustInvite(v.T, v.n.store, NewInvitation{})
		v.operators("RevokeInvitation", func(s *Store, _ string) (any, error) {
			return nil, s.Accounts().RevokeInvitation(v.Context(), invited.ID)
		})
	},
	"CheckInvitation": func(v visit) {
		invited := mustInvite(v.T, v.n.store, NewInvitation{})
		v.operators("CheckInvitation",
			func(s *Store, _ string) (any, error) { return s.Accounts().CheckInvitation(v.Context(), invited.Value) })
	},
	"AcceptInvitation": func(v visit) {
		invited := mustInvite(v.T, v.n.store, NewInvitation{})
		v.operators("AcceptInvitation", func(s *Store, _ string) (any, error) {
			return s.Accounts().AcceptInvitation(v.Context(),
				InvitationAcceptance{Value: invited.Value, Name: "newcomer", Password: "long and unusual"})
		})
	},
	"SignIns": func(v visit) {
		others, mine := v.signAllIn()
		answer, err := v.self("SignIns", false,
			func(s *Store, _ string) (any, error) { return s.Accounts().SignIns(v.Context()) })
		if sessions, ok := answer.([]SignIn); ok && err == nil && v.access.User != "noah" {
			if len(sessions) != 1 || sessions[0].ID != mine.ID || len(others) < 4 {
				v.Errorf("SignIns gives %+v, want that of %s alone", sessions, v.access.User)
			}
		}
	},
	"ConfirmSignIn": func(v visit) {
		others, mine := v.signAllIn()
		for user, session := range others {
			err := v.view.Accounts().ConfirmSignIn(v.Context(), session.ID)
			v.check("ConfirmSignIn", nil, err)
			if !isAny(err, ErrNotFound, ErrForbidden, ErrReadOnly) {
				v.Errorf("ConfirmSignIn of %s's gives %v, want ErrNotFound, ErrForbidden or ErrReadOnly", user, err)
			}
		}
		_, _ = v.self("ConfirmSignIn", true,
			func(s *Store, _ string) (any, error) { return nil, s.Accounts().ConfirmSignIn(v.Context(), mine.ID) })
	},
	"RevokeSignIn": func(v visit) {
		others, mine := v.signAllIn()
		for user, session := range others {
			err := v.view.Accounts().RevokeSignIn(v.Context(), session.ID, nil)
			v.check("RevokeSignIn", nil, err)
			if !isAny(err, ErrNotFound, ErrForbidden, ErrReadOnly) {
				v.Errorf("RevokeSignIn of %s's gives %v, want ErrNotFound, ErrForbidden or ErrReadOnly", user, err)
			}
			if errors.Is(err, ErrNotFound) {
				v.denied("RevokeSignIn", session.ID, err,
					func(id string) error { return v.view.Accounts().RevokeSignIn(v.Context(), id, nil) })
			}
		}
		_, _ = v.self("RevokeSignIn", true,
			func(s *Store, _ string) (any, error) {
				return nil, s.Accounts().RevokeSignIn(v.Context(), mine.ID, nil)
			})
		v.keepSessions(others)
	},
	"RevokeSignIns": func(v visit) {
		others, _ := v.signAllIn()
		_, _ = v.self("RevokeSignIns", true, func(s *Store, _ string) (any, error) {
			return nil, s.Accounts().RevokeSignIns(v.Context(), "", nil)
		})
		v.keepSessions(others)
	},
	"RevokeAccess": func(v visit) {
		others, _ := v.signAllIn()
		apps := v.connect("carol", "eve")
		_, _ = v.self("RevokeAccess", true, func(s *Store, _ string) (any, error) {
			return nil, s.Accounts().RevokeAccess(v.Context(), "", AccessKinds())
		})
		v.keepSessions(others)
		for user, app := range apps {
			_, err := v.n.store.Accounts().CheckAccessToken(v.Context(), checkOf(app.tokens.AccessToken))
			if user != v.access.User && err != nil {
				v.Errorf("%s's application lost its access: %v, want no error", user, err)
			}
		}
	},
	"Me": func(v visit) {
		v.haveAccounts()
		me, err := v.view.Accounts().Me(v.Context())
		v.check("Me", me, err)
		want := "mail" + v.access.User + "@example.com"
		if v.access.Projects != nil || v.access.User == "noah" {
			want = ""
		}
		if err != nil || me.ID != v.access.User || me.Email != want {
			v.Errorf("Me gives %+v, %v, want no error, ID %v and email %v", me, err, v.access.User, want)
		}
	},
	"ChangePassword": func(v visit) {
		v.haveAccounts()
		_, err := v.self("ChangePassword", true, func(s *Store, _ string) (any, error) {
			return nil, s.Accounts().ChangePassword(v.Context(), PasswordChange{New: "long enough"})
		})
		if v.access.User == "noah" && !errors.Is(err, ErrConflict) {
			v.Errorf("ChangePassword without an account gives %v, want ErrConflict", err)
		}
	},
	"LinkIdentity": func(v visit) {
		v.haveAccounts()
		v.others("LinkIdentity", true, func(s *Store, user string) (any, error) {
			return s.Accounts().LinkIdentity(v.Context(),
				NewIdentity{User: user, Issuer: "https://id.example", Subject: "another"})
		})
	},
	"Identities": func(v visit) {
		v.haveAccounts()
		v.others("Identities", false,
			func(s *Store, user string) (any, error) { return s.Accounts().Identities(v.Context(), user) })
	},
	"UnlinkIdentity": func(v visit) {
		v.haveAccounts()
		v.others("UnlinkIdentity", true, func(s *Store, user string) (any, error) {
			subject := user
			if user == "" {
				subject = v.access.User
			}
			err := s.Accounts().UnlinkIdentity(v.Context(),
				user, "https://id.example", subject)
			if errors.Is(err, ErrConflict) && (user == "" || user == v.access.User) || errors.Is(err, ErrNotFound) &&
				v.access.User == "noah" {
				return nil, nil // the only way to sign in, or no account
			}
			return nil, err
		})
	},
	"AddToken": func(v visit) {
		v.haveAccounts()
		v.others("AddToken", true, func(s *Store, user string) (any, error) {
			added, err := s.Accounts().AddToken(v.Context(), NewToken{Name: "mine", User: user})
			return added.Scopes, err
		})
		if v.access.Projects == nil && !v.access.ReadOnly {
			if _, err := v.view.Accounts().AddToken(v.Context(), NewToken{Name: "rising", Scopes: Scopes()}); !errors.Is(err,
				ErrForbidden) {
				v.Errorf("a token with the scope admin for a user who is not an admin: %v, want ErrForbidden", err)
			}
			if _, err := v.view.Accounts().AddToken(v.Context(),
				NewToken{Name: "reaching", Projects: []string{"secretplan"}}); (err == nil) != (v.access.User == "alice") {
				v.Errorf("a token for a project: got %v, want no error only for its owner", err)
			}
		}
	},
	"Tokens": func(v visit) {
		for _, m := range neighbours {
			v.give(m.user)
		}
		mine := v.give(v.access.User)
		answer, err := v.self("Tokens", false,
			func(s *Store, _ string) (any, error) { return s.Accounts().Tokens(v.Context()) })
		if tokens, ok := answer.([]Token); ok && err == nil {
			for _, token := range tokens {
				if token.Name != "of "+v.access.User {
					v.Errorf("Tokens shows the token %s; want %v", token.Name, "of "+v.access.User)
				}
			}
			if tokens[0].ID != mine.ID {
				v.Errorf("Tokens is %+v, want %s in it", tokens, mine.ID)
			}
		}
	},
	"UpdateToken": func(v visit) {
		pause := func(s *Store, id string) error {
			_, err := s.Accounts().UpdateToken(v.Context(), id, TokenUpdate{Paused: new(true)})
			return err
		}
		for _, m := range neighbours {
			if m.user == v.access.User {
				continue
			}
			token := v.give(m.user)
			err := pause(v.view, token.ID)
			v.check("UpdateToken", nil, err)
			if !isAny(err, ErrNotFound, ErrForbidden, ErrReadOnly) {
				v.Errorf("UpdateToken of %s's gives %v, want ErrNotFound, ErrForbidden or ErrReadOnly", m.user, err)
			}
			if errors.Is(err, ErrNotFound) {
				v.denied("UpdateToken", token.ID, err, func(id string) error { return pause(v.view, id) })
			}
			if _, err := v.n.store.Accounts().CheckToken(v.Context(), token.Value); err != nil {
				v.Errorf("%s's token: got %v, want it valid", m.user, err)
			}
		}
		token := v.give(v.access.User)
		_, _ = v.self("UpdateToken", true, func(s *Store, _ string) (any, error) { return nil, pause(s, token.ID) })
	},
	"RevokeToken": func(v visit) {
		for _, m := range neighbours {
			if m.user == v.access.User {
				continue
			}
			token := v.give(m.user)
			err := v.view.Accounts().RevokeToken(v.Context(), token.ID)
			v.check("RevokeToken", nil, err)
			if !isAny(err, ErrNotFound, ErrForbidden, ErrReadOnly) {
				v.Errorf("RevokeToken of %s's gives %v, want ErrNotFound, ErrForbidden or ErrReadOnly", m.user, err)
			}
			if errors.Is(err, ErrNotFound) {
				v.denied("RevokeToken", token.ID, err,
					func(id string) error { return v.view.Accounts().RevokeToken(v.Context(), id) })
			}
			if _, err := v.n.store.Accounts().CheckToken(v.Context(), token.Value); err != nil {
				v.Errorf("%s's token: got %v, want it valid", m.user, err)
			}
		}
		token := v.give(v.access.User)
		_, _ = v.self("RevokeToken", true,
			func(s *Store, _ string) (any, error) { return nil, s.Accounts().RevokeToken(v.Context(), token.ID) })
	},
	"Usage": func(v visit) {
		_, _ = v.self("Usage", false, func(s *Store, _ string) (any, error) { return s.Insights().Usage(v.Context()) })
	},
	"GetPreferences": func(v visit) {
		v.havePreferences()
		_, _ = v.self("GetPreferences", false, func(s *Store, _ string) (any, error) { return s.GetPreferences(v.Context()) })
	},
	"SetPreferences": func(v visit) {
		v.havePreferences()
		_, _ = v.self("SetPreferences", true, func(s *Store, _ string) (any, error) {
			return s.SetPreferences(v.Context(), map[string]any{"key": "mine"})
		})
		v.keepPreferences()
	},
	"UpdatePreferences": func(v visit) {
		v.havePreferences()
		_, _ = v.self("UpdatePreferences", true, func(s *Store, _ string) (any, error) {
			return s.UpdatePreferences(v.Context(), map[string]any{"key": "mine"})
		})
		v.keepPreferences()
	},
}

// operators calls a method of the operator, about all users. A user's view is refused, with an error that does not
// depend on the user it asks about, and changes nothing. The operator's own store succeeds.
func (v visit) operators(what string, call func(s *Store, user string) (any, error)) {
	v.Helper()
	before := rowsOf(v.T, v.n.store)
	_, want := call(v.view, "unknown")
	for _, user := range []string{"alice", "bob", "carol", v.access.User, ""} {
		answer, err := call(v.view, user)
		v.check(what, answer, err)
		if !errors.Is(err, ErrForbidden) || err.Error() != want.Error() || !strings.Contains(err.Error(), what) {
			v.Errorf("%s of %q gives %v, want ErrForbidden", what, user, err)
		}
	}
	if rowsOf(v.T, v.n.store) != before {
		v.Errorf("%s was refused and changed something, want no change", what)
	}
	if _, err := call(v.n.store, "alice"); errors.Is(err, ErrForbidden) {
		v.Errorf("%s is forbidden to the operator: %v, want not ErrForbidden", what, err)
	}
}

// self calls a method about the visitor's own account: limited views are refused, and read-only views may change
// nothing.
func (v visit) self(what string, changes bool, call func(s *Store, user string) (any, error)) (any, error) {
	v.Helper()
	before := rowsOf(v.T, v.n.store)
	answer, err := call(v.view, "")
	v.check(what, answer, err)
	switch {
	case v.access.Projects != nil:
		if !errors.Is(err, ErrForbidden) {
			v.Errorf("%s through a limited view gives %v, want ErrForbidden", what, err)
		}
	case v.access.ReadOnly && changes:
		if !errors.Is(err, ErrReadOnly) {
			v.Errorf("%s through a read-only view gives %v, want ErrReadOnly", what, err)
		}
	default:
		if err != nil && v.access.User != "noah" {
			v.Errorf("%s: got %v, want success", what, err)
		}
		return answer, err
	}
	if rowsOf(v.T, v.n.store) != before {
		v.Errorf("%s was refused and changed something, want no change", what)
	}
	return answer, err
}

// others calls a method that may name a user: only the visitor's own name is allowed.
func (v visit) others(what string, changes bool, call func(s *Store, user string) (any, error)) {
	v.Helper()
	before := rowsOf(v.T, v.n.store)
	for _, user := range []string{"alice", "bob", "carol", "eve", "no such user"} {
		if user == v.access.User {
			continue
		}
		answer, err := call(v.view, user)
		v.check(what+" for "+user, answer, err)
		if !errors.Is(err, ErrForbidden) && (!v.access.ReadOnly || !errors.Is(err, ErrReadOnly)) {
			v.Errorf("%s for %s gives %v, want ErrForbidden", what, user, err)
		}
	}
	if rowsOf(v.T, v.n.store) != before && v.access.User != "noah" {
		v.Errorf("%s was refused and changed something, want nothing changed", what)
	}
	if v.access.User == "noah" && what == "LinkIdentity" {
		return // has no account
	}
	_, _ = v.self(what, changes, call)
}

// haveAccounts gives all neighbours an account and an external identity.
func (v visit) haveAccounts() {
	v.Helper()
	for _, user := range []string{"alice", "bob", "carol", "dave", "eve", "frank"} {
		email := "mail" + user + "@example.com"
		_, err := v.n.store.Accounts().AddUser(v.Context(), NewUser{ID: user, Name: "Name " + user, Email: email})
		if errors.Is(err, ErrConflict) { // some have an account already
			_, err = v.n.store.Accounts().UpdateUser(v.Context(), user, UserUpdate{Email: &email})
		}
		if err != nil {
			v.Fatal(err)
		}
		if _, err := v.n.store.Accounts().LinkIdentity(v.Context(),
			NewIdentity{User: user, Issuer: "https://id.example", Subject: user}); err != nil {
			v.Fatal(err)
		}
	}
}

// give adds a token for a user.
func (v visit) give(user string) AddedToken {
	v.Helper()
	added, err := v.n.store.As(Access{User: user}).Accounts().AddToken(v.Context(),
		NewToken{Name: "of " + user, ExpiresIn: time.Hour})
	if err != nil {
		v.Fatal(err)
	}
	return added
}

// signIn adds a session for a user with an account.
func (v visit) signIn(user string) AddedSignIn {
	v.Helper()
	if user == "noah" || user == "" {
		user = "alice"
	}
	return mustAddSignIn(v.T, v.n.store, NewSignIn{User: user})
}

// signAllIn adds a session for each user. It returns them by user, and the visitor's own.
func (v visit) signAllIn() (others map[string]AddedSignIn, mine AddedSignIn) {
	v.Helper()
	others = map[string]AddedSignIn{}
	for user := range accounts {
		if session := v.signIn(user); user == v.access.User {
			mine = session
		} else {
			others[user] = session
		}
	}
	return others, mine
}

// keepSessions checks that sessions still work.
func (v visit) keepSessions(sessions map[string]AddedSignIn) {
	v.Helper()
	for user, session := range sessions {
		if _, err := v.n.store.Accounts().CheckSignIn(v.Context(), session.Value); err != nil {
			v.Errorf("%s's session: got %v, want it valid", user, err)
		}
	}
}

// havePreferences sets each user's preferences to the names of their memories, which are hidden from strangers.
func (v visit) havePreferences() {
	v.Helper()
	for _, m := range neighbours {
		if _, err := v.n.store.As(Access{User: m.user}).SetPreferences(v.Context(),
			map[string]any{"key": m.name}); err != nil {
			v.Fatal(err)
		}
	}
}

func (v visit) keepPreferences() {
	v.Helper()
	for _, m := range neighbours {
		if m.user == v.access.User {
			continue
		}
		if kept, err := v.n.store.As(Access{User: m.user}).GetPreferences(v.Context()); err != nil || kept["key"] == "mine" {
			v.Errorf(`%s's preferences are %v, %v, want no error and key other than "mine"`, m.user, kept, err)
		}
	}
}

// A reader who learns whose token it is gets a view that is as limited as the token.
func TestViewOfATokenReachesNoFurtherThanTheToken(t *testing.T) {
	onEachEngine(t, viewOfATokenReachesNoFurtherThanTheToken)
}

func viewOfATokenReachesNoFurtherThanTheToken(t *testing.T, empty database) {
	n := openNeighbourhood(t, buildNeighbourhood(t, empty), 0)
	added, err := n.store.Accounts().AddToken(t.Context(),
		NewToken{User: "bob", Name: "x", Projects: []string{"alice/shared"}, Scopes: []Scope{ScopeMemoryRead}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := n.store.Accounts().CheckToken(t.Context(), added.Value)
	if err != nil {
		t.Fatal(err)
	}
	view := n.store.As(p.Access)
	for _, m := range neighbours {
		_, err := view.GetMemory(t.Context(), n.ids[m.name])
		if seen := m.name == "aliceopen" || m.name == "alicemoved" || m.name == "carolreply"; (err == nil) != seen {
			t.Errorf("%s: got %v, want %v", m.name, err, seen)
		}
	}
	if err := view.DeleteMemory(t.Context(), n.ids["aliceopen"], nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("writing gives %v, want ErrReadOnly", err)
	}
	if _, err := view.Accounts().AddToken(t.Context(), NewToken{Name: "more"}); !errors.Is(err, ErrForbidden) {
		t.Errorf("a token that makes a wider one: %v, want ErrForbidden", err)
	}
}
