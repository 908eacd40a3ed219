package souvenir

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
)

// Whose data a view of a store reaches, and what may be called on it. What credentials allow is in credentials.go.

// Access names the user that a view of the store works for, and limits what it can reach. The zero value is the local
// user with all their data, which suits an embedding program without users.
type Access struct {
	// User is the id of the user: the owner of the collections, and of data stored outside others' projects. Empty means
	// the local user. The first write with an unknown id creates the user, unless the id is another user's name
	// (ErrConflict).
	User string `json:"user"`

	// Namespace separates the users of several applications in one file: "anna" in one namespace and "anna" in another
	// are different users, and neither can find, count or change the other's data. Members of a project are always of one
	// namespace. Empty means the default namespace, which the server uses. A namespace exists once one of its users has
	// written; its name has 1 to 128 characters. [Accounts.Namespace] manages its users.
	Namespace string `json:"namespace,omitempty"`

	// Projects limits the view to these projects: ids, or OWNER/ID (the owner's user id or account name) for another
	// user's shared project whose id is not unique. Nothing outside them is visible, not even memories without a project.
	// Nil means no limit; a non-nil empty slice means no access at all.
	Projects []string `json:"projects"`

	// Through names what acts for the user, such as "tool" or "page". The trash shows its first 64 characters beside the
	// user who deleted an item.
	Through string `json:"through,omitempty"`

	// ReadOnly refuses every write through the view with ErrReadOnly.
	ReadOnly bool `json:"read_only"`
}

// defaultNamespace is the namespace of users without a named one.
const defaultNamespace = ""

// LocalUser is the id of the user for whom a store works by default.
const LocalUser = kernel.LocalUser

// Access returns the access of this view.
func (s *Store) Access() Access {
	a := s.access
	a.Projects = slices.Clone(a.Projects)
	return a
}

// As returns a view of the store for the given access. It is cheap; make one for each request. Views share everything
// except their access. A view does not limit its own As: give untrusted code a [Store.Confined] view.
func (s *Store) As(access Access) *Store {
	if s.confined {
		return s.narrowed(access)
	}
	if access.User == "" {
		access.User = LocalUser
	}
	view := &Store{shared: s.shared, access: access}
	view.access = view.Access()
	return view
}

// Confined returns this view for untrusted code; for the Store that [Open] returned, it returns the local user's view.
// Nothing that a confined view returns reaches further than the view itself. Its As can only narrow it, to some of its
// projects or to reading; a view for another user, or for other projects, refuses every call. Everything in [Accounts]
// and [Upkeep], the members of projects, Close, and Snapshot and Transaction, which block others, return ErrForbidden.
// With the context of a Snapshot or Transaction begun elsewhere it works as usual. Confined does not protect against
// code that uses package unsafe.
func (s *Store) Confined() *Store {
	return &Store{shared: s.shared, access: s.Access(), confined: true, denied: s.denied}
}

// narrowed returns a confined view's view for an access.
func (s *Store) narrowed(access Access) *Store {
	view := s.Confined()
	view.access.ReadOnly = s.access.ReadOnly || access.ReadOnly
	view.access.Through = cmp.Or(s.access.Through, access.Through)
	beyond := access.User != "" && access.User != s.access.User ||
		access.Namespace != "" && access.Namespace != s.access.Namespace
	if access.Projects != nil {
		for _, id := range access.Projects {
			beyond = beyond || s.access.Projects != nil && !slices.Contains(s.access.Projects, id)
		}
		view.access.Projects = slices.Clone(access.Projects)
	}
	if beyond && view.denied == nil {
		view.denied = newError(KindForbidden, "", "this view is confined: As cannot widen it")
	}
	return view
}

// handle is the store of [Accounts] or [Upkeep].
type handle struct{ s *Store }

// operator returns the store for a method about the whole store, and refuses it on a view.
func (h handle) operator(ctx context.Context, method string) (*Store, error) {
	if err := h.s.outside(ctx, method); err != nil {
		return h.s, err
	}
	return h.s, h.s.checkOperator(method)
}

// own returns the store for a method about all data of the user, and refuses it on a view limited to projects.
func (h handle) own(ctx context.Context, method string) (*Store, error) {
	if err := h.s.outside(ctx, method); err != nil {
		return h.s, err
	}
	return h.s, h.s.checkAccount()
}

// handled returns the store for a handle whose methods reach beyond one view. A confined view may call none of them.
func (s *Store) handled(handle string) *Store {
	if !s.confined {
		return s
	}
	refusing := s.Confined()
	refusing.denied = s.checkUnconfined(handle)
	return refusing
}

// checkUnconfined refuses operations that reach further than a confined view.
func (s *Store) checkUnconfined(what string) error {
	if !s.confined {
		return nil
	}
	return newError(KindForbidden, "", "this view is confined: %s is not available on it", what)
}

// checkOperator refuses methods about the whole store through a user's view.
func (s *Store) checkOperator(what string) error {
	if s.denied != nil {
		return s.denied
	}
	if s.operator {
		return nil
	}
	return newError(KindForbidden, "",
		"%s is for the whole store; call it on the Store that Open returned, not on a user's view", what)
}

// checkAccount refuses methods about a user's account through a view limited to projects.
func (s *Store) checkAccount() error {
	if s.denied != nil {
		return s.denied
	}
	if s.access.Projects == nil {
		return nil
	}
	return newError(KindForbidden, "", "this needs access to all of the user's data; this access is limited to "+
		"the projects %s", oneOf(s.access.Projects))
}

// viewer is an [Access] resolved to rows at the beginning of each transaction. Its conditions decide visibility.
type viewer = kernel.Viewer

// viewer looks up the view's user and projects. It writes nothing.
func (s *Store) viewer(tx db.Tx) (viewer, error) { return s.viewerWithBounds(tx, nil, nil) }

// viewerWithBounds is like viewer, but reuses the bounds that other, unless nil, has read in the transaction. ahead,
// unless nil, announces what the transaction will read; the viewer passed to it has no projects yet.
func (s *Store) viewerWithBounds(tx db.Tx, other *viewer, ahead func(db.Tx, viewer)) (viewer, error) {
	if s.denied != nil {
		return viewer{}, s.denied
	}
	v := viewer{Limited: s.access.Projects != nil, Namespace: s.access.Namespace}
	var err error
	if v.User, err = s.userRow(tx); err != nil {
		return v, err
	}
	if ahead != nil {
		ahead(tx, v)
	}
	if other != nil {
		v.SetBounds(*other)
	} else if err := v.ReadBounds(tx, s.now()); err != nil {
		return v, err
	}
	for _, id := range s.access.Projects {
		p, err := naming.Find(tx, viewer{User: v.User, Namespace: v.Namespace}, id, "")
		if errors.Is(err, ErrInvalid) {
			continue // two projects are shared under this ambiguous id: allow neither
		}
		if err != nil {
			setGoNames[Access](&err, "project_id", "Access.Projects")
			return v, err
		}
		if p != nil {
			v.Projects = append(v.Projects, p.Row)
		}
	}
	return v, nil
}

// userKey identifies a user in the whole file.
type userKey struct{ namespace, id string }

func (s *Store) userKey() userKey { return userKey{s.access.Namespace, s.access.User} }

// knownUsers remembers the rows of users; a deleted user's row stays. The zero value knows none. It is no sync.Map:
// each package that uses a store would compile the methods of that generic type again.
type knownUsers struct {
	mu   sync.RWMutex
	rows map[userKey]int64
}

func (k *knownUsers) row(key userKey) (row int64, known bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	row, known = k.rows[key]
	return row, known
}

func (k *knownUsers) keep(key userKey, row int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rows == nil {
		k.rows = map[userKey]int64{}
	}
	k.rows[key] = row
}

// userRow returns the row of the view's user, 0 if there is none yet.
func (s *Store) userRow(tx db.Tx) (int64, error) {
	key := s.userKey()
	if row, known := s.users.row(key); known {
		return row, nil
	}
	rows, err := db.Column[int64](tx, `SELECT id FROM users WHERE namespace = ? AND uid = ?`, key.namespace, key.id)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	if !tx.Writable() {
		s.users.keep(key, rows[0]) // a write transaction might still roll the row back
	}
	return rows[0], nil
}

// rememberUser caches the row of the view's user after a write, once nothing can roll it back.
func (s *Store) rememberUser(ctx context.Context, row int64) {
	key := s.userKey()
	if _, known := s.users.row(key); known {
		return
	}
	s.db.AtEnd(ctx, func(undone error) {
		if undone == nil {
			s.users.keep(key, row)
		}
	})
}

// addUser creates the row of a view's user, whose id must not look like another user's name.
func (s *Store) addUser(tx db.Tx) (int64, error) {
	key := s.userKey()
	if err := kernel.CheckUserIDFree(tx, "user", key.namespace, key.id); err != nil {
		setGoNames[Access](&err)
		return 0, err
	}
	return db.Insert(tx, `INSERT INTO users (namespace, uid, uid_key, created_at) VALUES (?, ?, ?, ?) RETURNING id`,
		key.namespace, key.id, foldname.Key(key.id), s.now())
}
