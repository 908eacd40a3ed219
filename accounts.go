package souvenir

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Accounts: the handle for them, where its methods may be called, and lists of users. What a user is, and how one is
// added, changed and deleted, is in users.go.

// Accounts manages users and their credentials: identities, invitations, sign-ins, MCP tokens, and the clients, grants,
// codes and keys of OAuth. Get it with [Store.Accounts].
//
// On the Store that [Open] returned it manages all accounts. On a view it is limited to the account of the view's user:
// their password, identities, sign-ins, tokens, clients and grants, and the invitations to projects that they received.
// All other methods return ErrForbidden there: they manage users and invitations to accounts, check credentials, sign
// users in, look up any client, register clients or issue tokens. On a view limited to projects, every method except Me
// returns ErrForbidden.
type Accounts struct {
	handle
}

// Accounts returns the methods for users and their credentials.
func (s *Store) Accounts() *Accounts {
	return &Accounts{handle{s.handled("Accounts")}}
}

// Namespace returns the methods for the users of a namespace, named as in [Access].Namespace; for the default one it
// returns the same as [Store.Accounts]. They add, list, change and delete users, and manage and check passwords,
// sign-ins and MCP tokens: each finds only users of that namespace. Methods that the server needs for its users (OAuth,
// identities at providers, invitations to accounts) work in the default namespace only, and return ErrForbidden in
// others. Through a view, every namespace but its own is ErrForbidden.
func (h *Accounts) Namespace(name string) *Accounts {
	if name == h.s.access.Namespace {
		return h
	}
	in := *h.s
	if in.denied = h.s.checkOperator("Accounts.Namespace"); in.denied == nil {
		in.access = Access{User: LocalUser, Namespace: name}
	}
	return &Accounts{handle{&in}}
}

// Namespaces returns the names of all namespaces that have users, except the default one, in order. It is for the Store
// that [Open] returned.
func (h *Accounts) Namespaces(ctx context.Context) ([]string, error) {
	s, err := h.operator(ctx, "Namespaces")
	if err != nil {
		return nil, err
	}
	all := []string{}
	err = s.readStore(ctx, func(tx db.Tx) (err error) { // one step in the index per namespace
		all, err = db.Column[string](tx, `WITH RECURSIVE found (name) AS (
			SELECT min(namespace) FROM users WHERE namespace > '' UNION ALL
			SELECT (SELECT min(namespace) FROM users WHERE namespace > found.name) FROM found WHERE found.name IS NOT NULL)
			SELECT name FROM found WHERE name IS NOT NULL ORDER BY name`)
		return err
	})
	return all, err
}

// serving is like operator, for methods that only the default namespace has.
func (h *Accounts) serving(ctx context.Context, method string) (*Store, error) {
	s, err := h.operator(ctx, method)
	return s, cmp.Or(err, s.checkServes(method))
}

// servingOwn is like own, for methods that only the default namespace has.
func (h *Accounts) servingOwn(ctx context.Context, method string) (*Store, error) {
	s, err := h.own(ctx, method)
	return s, cmp.Or(err, s.checkServes(method))
}

// checkServes refuses methods that work only in the default namespace, the server's.
func (s *Store) checkServes(what string) error {
	if s.access.Namespace == defaultNamespace {
		return nil
	}
	return newError(KindForbidden, "", "%s works only in the default namespace, which the server uses; this is %s", what,
		show(s.access.Namespace))
}

// Me returns the user of this view. A user who has no account, or has stored nothing yet, is a User with an id and
// [RoleUser]. A view that is limited to projects does not get the email address.
func (h *Accounts) Me(ctx context.Context) (User, error) {
	s := h.s
	var me storedUser
	err := s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		me, err = s.account(tx, v, "")
		return err
	})
	if s.access.Projects != nil {
		me.Email = ""
	}
	return me.User, err
}

// account finds the user that a call is about: the view's own when none is named. Only the operator may name another.
func (s *Store) account(tx db.Tx, v viewer, idOrName string) (storedUser, error) {
	own := storedUser{User: User{ID: s.access.User, Role: RoleUser}}
	if v.User != 0 {
		found, err := loadUsers(tx, `u.id = ?`, v.User)
		if err != nil {
			return own, err
		}
		own = found[0]
	}
	switch {
	case idOrName == "" || idOrName == own.ID:
		return own, nil
	case s.operator:
		return findUser(tx, v.Namespace, idOrName)
	case own.Name != "" && len(idOrName) <= valid.MaxFoldedName && foldname.Key(idOrName) == foldname.Key(own.Name):
		return own, nil
	}
	return own, newError(KindForbidden, "user", "{} is %s; a user's view is for that user only", show(idOrName))
}

// checkHasAccount refuses a user without an account.
func (u storedUser) checkHasAccount() error {
	if u.Name != "" {
		return nil
	}
	return withGoNames[Access](newError(KindConflict, "user", "{} %s has no account; add one with this id first",
		show(u.ID)))
}

// listed is the condition for users in lists: users with an account or with anything in the store. A row alone does not
// count, since a call that stored nothing also leaves one.
const listed = `(u.name IS NOT NULL OR EXISTS (SELECT 1 FROM collection WHERE owner_id = u.id AND name <> '')
	OR EXISTS (SELECT 1 FROM project WHERE owner_id = u.id)
	OR EXISTS (SELECT 1 FROM project_member WHERE user_id = u.id) OR EXISTS (SELECT 1 FROM file WHERE owner_id = u.id
	AND state = 'stored'))`

// byName is the order of lists of users: by name; users without an account come last, by id.
const byName = ` ORDER BY u.name_key IS NULL, u.name_key, u.uid`

// Users iterates over the users who have an account or anything in the store when it begins, by name; users without an
// account come last, by id. Users deleted meanwhile are skipped. The sequence ends after the first error.
func (h *Accounts) Users(ctx context.Context) iter.Seq2[User, error] {
	const page = 256
	return func(yield func(User, error) bool) {
		s, err := h.operator(ctx, "Users")
		var rows []int64
		if err == nil {
			err = s.readStore(ctx, func(tx db.Tx) (err error) {
				rows, err = db.Column[int64](tx, `SELECT u.id FROM users u WHERE u.namespace = ? AND `+listed+byName,
					s.access.Namespace)
				return err
			})
		}
		if err != nil {
			yield(User{}, err)
			return
		}
		for batch := range slices.Chunk(rows, page) {
			var found []storedUser
			err := s.readStore(ctx, func(tx db.Tx) (err error) {
				found, err = loadUsers(tx, listed+` AND u.id IN `+db.Integers+byName, db.List(batch))
				return err
			})
			if err != nil {
				yield(User{}, err)
				return
			}
			for _, u := range found {
				if !yield(u.User, nil) {
					return
				}
			}
		}
	}
}

// MaxUserLimit is the most users that [Accounts.UserPage] returns at once.
const MaxUserLimit = 1000

// UserQuery asks for a page of users. A user must match every field that is set.
type UserQuery struct {
	Text     string // a part of the name or the e-mail address, compared as names are, or the whole id; empty: any
	Accounts bool   // only users who have an account
	Limit    int    // users to return, 1 to 1,000; zero means 1,000
	Offset   int    // users to skip, 0 or more; beyond the last user the page is empty
}

// UserPage is a page of users.
type UserPage struct {
	Users  []User `json:"users"`  // never nil
	Total  int    `json:"total"`  // matching users, on all pages
	Offset int    `json:"offset"` // as in the query
	Limit  int    `json:"limit"`  // as applied
}

// UserPage returns a page of the users that match, in the order of [Accounts.Users], and their total number.
func (h *Accounts) UserPage(ctx context.Context, q UserQuery) (_ UserPage, err error) {
	defer setGoNames[UserQuery](&err)
	s, err := h.operator(ctx, "UserPage")
	if err != nil {
		return UserPage{}, err
	}
	q.Limit = cmp.Or(q.Limit, MaxUserLimit)
	if err := checkPage(q.Limit, MaxUserLimit, q.Offset); err != nil {
		return UserPage{}, err
	}
	if len(q.Text) > valid.MaxFoldedName {
		return UserPage{}, newError(KindTooLarge, "text", "{} is %d bytes; at most %d are allowed", len(q.Text),
			valid.MaxFoldedName)
	}
	if err := valid.UTF8("text", q.Text); err != nil {
		return UserPage{}, err
	}
	condition, order := `u.namespace = ? AND `, byName
	args := []any{s.access.Namespace}
	if q.Accounts {
		condition, order = condition+`u.name_key IS NOT NULL`, ` ORDER BY u.name_key` // in the order of the index
	} else {
		condition += listed
	}
	if q.Text != "" {
		condition += ` AND (u.uid = ? OR u.name_key LIKE ? ESCAPE '\' OR lower(u.email) LIKE ? ESCAPE '\')`
		args = append(args, q.Text, contains(foldname.Key(q.Text)), contains(db.Lower(q.Text)))
	}
	p := UserPage{Users: []User{}, Offset: q.Offset, Limit: q.Limit}
	err = s.readStore(ctx, func(tx db.Tx) error {
		if err := tx.QueryRow(`SELECT count(*) FROM users u WHERE `+condition, args...).Scan(&p.Total); err != nil {
			return err
		}
		found, err := loadUsers(tx, condition+order+` LIMIT ? OFFSET ?`, append(args, q.Limit, q.Offset)...)
		if err != nil {
			return err
		}
		seen, err := lastSeen(tx, found)
		for _, u := range found {
			if at := seen[u.row]; at != 0 {
				u.LastSeenAt = kernel.ToTime(at)
			}
			p.Users = append(p.Users, u.User)
		}
		return err
	})
	return p, err
}

// lastSeen returns when each user's credentials were last used, by the user's row.
func lastSeen(tx db.Tx, users []storedUser) (map[int64]int64, error) {
	rows, seen := make([]int64, len(users)), map[int64]int64{}
	for i, u := range users {
		rows[i] = u.row
	}
	err := tx.Each(func(row db.Rows) error {
		var user int64
		var at *int64
		err := row.Scan(&user, &at)
		if at != nil {
			seen[user] = *at
		}
		return err
	}, `SELECT u.user_id, max(u.last_used_at) FROM (SELECT user_id, last_used_at FROM session
			UNION ALL SELECT user_id, last_used_at FROM token UNION ALL SELECT user_id, last_used_at FROM oauth_grant) u
		WHERE u.user_id IN `+db.Integers+` GROUP BY u.user_id`, db.List(rows))
	return seen, err
}

// contains returns a LIKE pattern, with the escape character \, for texts that contain a part.
func contains(part string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(part) + "%"
}
