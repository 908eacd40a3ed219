package souvenir

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Users: what one is, how one is found, lists of them, and their preferences. Their accounts are in accounts.go.

// User is a user of the store.
type User struct {
	ID          string    `json:"id"`   // as in Access.User
	Name        string    `json:"name"` // to sign in with; empty: no account, only memories
	Email       string    `json:"email,omitempty"`
	Role        Role      `json:"role"`
	Disabled    bool      `json:"disabled"` // all credentials of the user are refused
	HasPassword bool      `json:"has_password"`
	CreatedAt   time.Time `json:"created_at"`

	// LastSeenAt is when one of the user's sign-ins, tokens or applications was last used, as far as the store still has
	// them. Only [Accounts.UserPage] sets it; zero: never, or unknown.
	LastSeenAt time.Time `json:"last_seen_at,omitzero"`
}

// Role gives a user rights besides storing memories.
type Role string

// The values of [Role].
const (
	RoleUser  Role = "user"
	RoleAdmin Role = "admin" // manages users, clients and the store as a whole
)

// storedUser is a user with the fields that stay inside the store.
type storedUser struct {
	User
	row      int64
	password string // argon2id in PHC string format; empty: none
}

// loadUsers reads the users for which a condition on u holds.
func loadUsers(tx db.Tx, condition string, args ...any) ([]storedUser, error) {
	var found []storedUser
	err := tx.Each(func(row db.Rows) error {
		var u storedUser
		err := row.Scan(&u.row, &u.ID, &u.Name, &u.Email, &u.Role, &u.Disabled, &u.password,
			kernel.TimeInto(&u.CreatedAt))
		u.HasPassword = u.password != ""
		found = append(found, u)
		return err
	}, `SELECT u.id, u.uid, coalesce(u.name, ''), coalesce(u.email, ''), u.role, u.disabled_at IS NOT NULL,
		coalesce(u.password, ''), u.created_at
		FROM users u WHERE `+condition, args...)
	return found, err
}

// findUser looks up a user of a namespace by id, or else by name. A row left behind by a deleted user does not count.
func findUser(tx db.Tx, namespace, idOrName string) (storedUser, error) {
	found, err := loadUsers(tx, `u.namespace = ? AND u.uid = ? AND (u.disabled_at IS NULL OR `+listed+`)`, namespace,
		idOrName)
	if err == nil && len(found) == 0 && len(idOrName) <= valid.MaxFoldedName {
		found, err = loadUsers(tx, `u.namespace = ? AND u.name_key = ?`, namespace, foldname.Key(idOrName))
	}
	if err != nil {
		return storedUser{}, err
	}
	if len(found) == 0 {
		return storedUser{}, newError(KindNotFound, "user",
			"{} %s is unknown; give the id of a user or the name of an account", show(idOrName))
	}
	return found[0], nil
}

// userRowOf returns the row of a user without an account, and creates it if it does not exist.
func (s *Store) userRowOf(tx db.Tx, id string) (int64, error) {
	users, err := loadUsers(tx, `u.namespace = ? AND u.uid = ?`, s.access.Namespace, id)
	switch {
	case err != nil:
		return 0, err
	case len(users) == 0:
		return (&Store{shared: s.shared, access: Access{User: id, Namespace: s.access.Namespace}}).addUser(tx)
	case users[0].Name != "":
		return 0, newError(KindConflict, "id", "{} %s already has an account, with the name %s", show(id),
			show(users[0].Name))
	}
	return users[0].row, nil
}

// GetUser returns a user by id or, if no user has that id, by name. An unknown one is ErrNotFound. Only for the
// operator's store; a user's own view has [Accounts.Me].
func (h *Accounts) GetUser(ctx context.Context, idOrName string) (_ User, err error) {
	defer setGoNames[struct{}](&err, "user", "idOrName")
	s, err := h.operator(ctx, "GetUser")
	if err != nil {
		return User{}, err
	}
	var found storedUser
	err = s.read(ctx, func(tx db.Tx, _ viewer) (err error) {
		found, err = findUser(tx, s.access.Namespace, idOrName)
		return err
	})
	return found.User, err
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

// MaxPreferences limits the size of a user's preferences, in bytes of JSON. Preferences are an object in which programs
// with a user interface keep their settings; the store itself does not interpret it.
const MaxPreferences = kernel.MaxPreferences // 64 KiB

// GetPreferences returns the user's preferences: an empty map for none. Numbers are float64 where that loses nothing,
// else json.Number. A view limited to projects may not call it.
func (s *Store) GetPreferences(ctx context.Context) (found map[string]any, err error) {
	if err := s.checkAccount(); err != nil {
		return nil, err
	}
	err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		found, err = kernel.Preferences(tx, v.User)
		return err
	})
	return found, err
}

// SetPreferences replaces the user's preferences and returns them; nil clears them. More than 64 KiB as JSON are
// ErrTooLarge. A view limited to projects may not call it.
func (s *Store) SetPreferences(ctx context.Context, all map[string]any) (_ map[string]any, err error) {
	defer setGoNames[struct{}](&err, "preferences", "all")
	return s.changePreferences(ctx, all, func(_, given map[string]any) any { return given })
}

// UpdatePreferences applies a JSON merge patch (RFC 7396) to the user's preferences and returns the result: keys
// replace, null removes, objects merge. Concurrent patches all take effect. Otherwise it is like SetPreferences.
func (s *Store) UpdatePreferences(ctx context.Context, patch map[string]any) (_ map[string]any, err error) {
	defer setGoNames[struct{}](&err, "preferences", "patch")
	return s.changePreferences(ctx, patch,
		func(present, given map[string]any) any { return jsonobject.MergePatch(present, given) })
}

func (s *Store) changePreferences(ctx context.Context, given map[string]any,
	change func(present, given map[string]any) any) (changed map[string]any, err error) {
	if err := s.checkAccount(); err != nil {
		return nil, err
	}
	if given, err = kernel.CanonicalPreferences(given); err != nil {
		return nil, err
	}
	err = s.write(ctx, func(tx db.Tx, v viewer) (err error) {
		changed, err = kernel.ChangePreferences(tx, v.User, s.now(), given, change)
		return err
	})
	return changed, err
}
