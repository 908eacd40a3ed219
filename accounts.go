package souvenir

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/records/receipt"
	"github.com/souvenir-ai/souvenir/internal/redact"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/trash"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Accounts: the handle for them, where its methods may be called, and how an account is added, changed and deleted.
// What a user is, with or without an account, and how users are found and listed, is in users.go.

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

// checkHasAccount refuses a user without an account.
func (u storedUser) checkHasAccount() error {
	if u.Name != "" {
		return nil
	}
	return withGoNames[Access](newError(KindConflict, "user", "{} %s has no account; add one with this id first",
		show(u.ID)))
}

// NewUser describes an account to add.
type NewUser struct {
	// ID is the user's id and never changes. Empty means a new UUIDv7. The id of a user who has memories but no account,
	// such as [LocalUser], gives that user the account.
	ID string

	// Name is the name to sign in with: 1 to 64 characters, without slashes or invisible characters. Names that differ
	// only in case, width or the encoding of a character are the same name; a name cannot be the id of another user.
	Name string

	Email    string // for people; empty: none. At most 254 characters; ownership is not verified
	Role     Role   // empty means RoleUser
	Password string // see [PasswordChange].New; empty: none, the user signs in with an external identity

	// Identity is the user's identity at an identity provider, linked in the same commit as LinkIdentity would; its
	// CreatedAt is ignored. Zero: none.
	Identity Identity
}

// Format prints the user without the password.
func (n NewUser) Format(f fmt.State, _ rune) { redact.Format(f, n, "Password") }

// UserUpdate describes a change to an account. Nil fields change nothing.
type UserUpdate struct {
	Name  *string
	Email *string // "" removes it
	Role  *Role
	// true permanently ends the user's sign-ins, MCP tokens and OAuth grants; false lets the user sign in again
	Disabled *bool

	// Password is the new one; "" removes it: the user signs in with an external identity. Sign-ins and OAuth grants end
	// with the old one, since others may have known it; MCP tokens stay valid unless EndTokens or Disabled ends them.
	Password *string

	EndTokens bool // the user's MCP tokens end in the same commit
}

// AddUser adds an account. A name or an id that already has one, or an identity that belongs to another user, is
// ErrConflict.
func (h *Accounts) AddUser(ctx context.Context, n NewUser) (_ User, err error) {
	defer setGoNames[NewUser](&err)
	s, err := h.operator(ctx, "AddUser")
	if err != nil {
		return User{}, err
	}
	n, hash, err := s.checkNewUser(ctx, n)
	if err != nil {
		return User{}, err
	}
	var added storedUser
	err = s.write(ctx, func(tx db.Tx, _ viewer) (err error) {
		added, err = s.addAccount(tx, n, hash)
		return s.note(ctx, tx, err, event{"user.add", "user", added.ID, audit.Details{"role": added.Role}})
	})
	return added.User, err
}

// checkNewUser checks a new account on its own, fills in the defaults, and hashes the password.
func (s *Store) checkNewUser(ctx context.Context, n NewUser) (NewUser, string, error) {
	if n.ID != "" {
		if err := valid.Name("id", n.ID); err != nil {
			return n, "", err
		}
	}
	name, err := valid.UserName(n.Name)
	if err != nil {
		return n, "", err
	}
	n.Name, n.Role = name, cmp.Or(n.Role, RoleUser)
	if err := checkUserDetails(n.Email, n.Role); err != nil {
		return n, "", err
	}
	if n.Identity.given() {
		if err := s.checkServes("NewUser.Identity"); err != nil {
			return n, "", err
		}
		if err := checkIdentityOf[NewUser](n.Identity); err != nil {
			return n, "", err
		}
	}
	if n.Password == "" {
		return n, "", nil
	}
	hash, err := s.hashing.New(ctx, "password", n.Password, n.Name)
	return n, hash, err
}

// addAccount writes a checked new account; hash is the hash of its password.
func (s *Store) addAccount(tx db.Tx, n NewUser, hash string) (storedUser, error) {
	id := cmp.Or(n.ID, s.newID())
	key := userKey{s.access.Namespace, id}
	if err := kernel.CheckUserIDFree(tx, "id", key.namespace, id); err != nil {
		return storedUser{}, err
	}
	row, err := s.userRowOf(tx, id)
	if err != nil {
		return storedUser{}, err
	}
	if err := kernel.CheckUserNameFree(tx, key.namespace, id, n.Name); err != nil {
		return storedUser{}, err
	}
	account := storedUser{User: User{Name: n.Name, Email: n.Email, Role: n.Role}, row: row, password: hash}
	if err := s.setAccount(tx, account); err != nil {
		return storedUser{}, err
	}
	if err := disable(tx, row, false, s.now()); err != nil { // a deleted user was left disabled
		return storedUser{}, err
	}
	if n.Identity.given() {
		if _, err := s.linkIdentity(tx, account, n.Identity); err != nil {
			return storedUser{}, err
		}
	}
	return findUser(tx, key.namespace, id)
}

// checkUserDetails checks the fields that are not credentials.
func checkUserDetails(email string, role Role) error {
	if err := valid.Email(email); err != nil {
		return err
	}
	if role == "" {
		return invalid("role", `{} is ""; expected %s`, oneOf([]Role{RoleUser, RoleAdmin}))
	}
	return valid.Enum("role", role, []Role{RoleUser, RoleAdmin})
}

// UpdateUser changes an account, found by id or name. Demoting or disabling the last enabled admin is ErrConflict, and
// so are a name that is taken and a user without an account.
func (h *Accounts) UpdateUser(ctx context.Context, idOrName string, u UserUpdate) (_ User, err error) {
	defer setGoNames[UserUpdate](&err, "user", "idOrName")
	s, err := h.operator(ctx, "UpdateUser")
	if err != nil {
		return User{}, err
	}
	u, hash, err := s.checkUpdate(ctx, idOrName, u)
	if err != nil {
		return User{}, err
	}
	var updated storedUser
	err = s.write(ctx, func(tx db.Tx, _ viewer) error {
		before, err := findUser(tx, s.access.Namespace, idOrName)
		if err != nil {
			return err
		}
		if err := before.checkHasAccount(); err != nil {
			return err
		}
		if err := s.updateUser(tx, before, u, hash); err != nil {
			return err
		}
		updated, err = findUser(tx, s.access.Namespace, before.ID)
		return s.note(ctx, tx, err, event{"user.update", "user", before.ID, u.details(before)})
	})
	return updated.User, err
}

// applied returns a user as the change leaves it, apart from credentials.
func (u UserUpdate) applied(to User) User {
	if u.Name != nil {
		to.Name = *u.Name
	}
	if u.Email != nil {
		to.Email = *u.Email
	}
	if u.Role != nil {
		to.Role = *u.Role
	}
	return to
}

// checkUpdate checks a change on its own and hashes the password.
func (s *Store) checkUpdate(ctx context.Context, idOrName string, u UserUpdate) (UserUpdate, string, error) {
	if u.Name != nil {
		name, err := valid.UserName(*u.Name)
		if err != nil {
			return u, "", err
		}
		u.Name = &name
	}
	given := u.applied(User{Role: RoleUser})
	if err := checkUserDetails(given.Email, given.Role); err != nil {
		return u, "", err
	}
	if u.Password == nil || *u.Password == "" {
		return u, "", nil
	}
	before, err := (&Accounts{handle{s}}).GetUser(ctx, idOrName) // before the work is done, and for the name
	if err != nil {
		return u, "", err
	}
	hash, err := s.hashing.New(ctx, "password", *u.Password, u.applied(before).Name)
	return u, hash, err
}

// updateUser writes a checked change; hash is the hash of the new password.
func (s *Store) updateUser(tx db.Tx, before storedUser, u UserUpdate, hash string) error {
	after := before
	after.User = u.applied(before.User)
	if u.Name != nil {
		if err := kernel.CheckUserNameFree(tx, s.access.Namespace, before.ID, after.Name); err != nil {
			return err
		}
	}
	if u.Password != nil {
		after.password = hash
	}
	if err := s.setAccount(tx, after); err != nil {
		return err
	}
	var ends []AccessKind
	if u.Password != nil {
		ends = []AccessKind{AccessSignIns, AccessGrants}
	}
	if u.EndTokens {
		ends = append(ends, AccessTokens)
	}
	if err := s.revokeKinds(tx, before.row, "", ends); err != nil {
		return err
	}
	if u.Disabled != nil && *u.Disabled != before.Disabled {
		if err := disable(tx, before.row, *u.Disabled, s.now()); err != nil {
			return err
		}
	}
	return s.checkAdminLeft(tx, before)
}

// details returns an update's details for the audit log: the changed fields, and the new values of roles and locks.
func (u UserUpdate) details(before storedUser) audit.Details {
	d, after := audit.Details{}, u.applied(before.User)
	for field, changed := range map[string]bool{"name": after.Name != before.Name, "email": after.Email != before.Email,
		"password": u.Password != nil, "end_tokens": u.EndTokens} {
		if changed {
			d[field] = true
		}
	}
	if u.Role != nil {
		d["role"], d["former_role"] = after.Role, before.Role
	}
	if u.Disabled != nil {
		d["disabled"] = *u.Disabled
	}
	return d
}

// setAccount writes the fields of an account.
func (s *Store) setAccount(tx db.Tx, u storedUser) error {
	_, err := tx.Exec(`UPDATE users SET name = ?2, name_key = ?3, email = ?4, role = ?5, password = ?6, updated_at = `+
		laterChange+` WHERE id = ?7`,
		s.now(), u.Name, foldname.Key(u.Name), db.OrNull(u.Email), u.Role, db.OrNull(u.password), u.row)
	return err
}

// laterChange is the time ?1 for updated_at, or the stored one if that is later, as after a change of the clock: the
// key ring compares it with the time of a deletion.
const laterChange = `CASE WHEN updated_at > ?1 THEN updated_at ELSE ?1 END`

// disable locks a user out, with every program that acts for them, or lets the user in again.
func disable(tx db.Tx, row int64, disabled bool, now int64) error {
	if !disabled {
		_, err := tx.Exec(`UPDATE users SET disabled_at = NULL, updated_at = `+laterChange+` WHERE id = ?2`, now, row)
		return err
	}
	if _, err := tx.Exec(`UPDATE users SET disabled_at = ?1, updated_at = `+laterChange+` WHERE id = ?2`, now,
		row); err != nil {
		return err
	}
	if err := deleteSignIns(tx, row, ""); err != nil {
		return err
	}
	if err := revokeTokens(tx, now, `user_id = ?`, row); err != nil {
		return err
	}
	return revokeGrants(tx, now, `user_id = ?`, row)
}

// checkAdminLeft refuses a change, already made in tx, that removes the last admin. before is the user before the
// change.
func (s *Store) checkAdminLeft(tx db.Tx, before storedUser) error {
	if before.Role != RoleAdmin || before.Disabled {
		return nil
	}
	left, err := db.Column[int64](tx, `SELECT count(*) FROM users WHERE namespace = ? AND role = 'admin' `+
		`AND disabled_at IS NULL`, s.access.Namespace)
	if err == nil && left[0] == 0 {
		return newError(KindConflict, "user", "{} %s is the last admin who can sign in; make another user an admin first",
			show(before.Name))
	}
	return err
}

// DeleteUser deletes a user's account with its sign-ins, tokens, OAuth grants and clients, preferences and memberships.
// Deleting the last enabled admin is ErrConflict. The id stays known to the store: an account added with it later, or a
// view made with it, starts empty. Memories are deleted in batches of a thousand, so that other writers get their turn;
// after an error the user may be disabled and some memories gone, and a second call deletes the rest.
func (h *Accounts) DeleteUser(ctx context.Context, idOrName string, options *DeletionOptions) (err error) {
	defer setGoNames[DeletionOptions](&err, "user", "idOrName")
	o := options.orDefault()
	s, err := h.operator(ctx, "DeleteUser")
	if err != nil {
		return err
	}
	ctx = db.Freeing(ctx)
	u, err := h.GetUser(ctx, idOrName)
	if err != nil {
		return err
	}
	if err := s.activity.Flush(ctx); err != nil { // otherwise it would be written after the rest is deleted
		return wrap(err)
	}
	defer s.worker.Wake() // removes the contents of the user's files
	id := u.ID            // the name may belong to another user by the time the last memories are deleted
	var holdings receipt.Claims
	if o.Receipt != nil {
		if holdings, err = s.holdings(ctx, id); err != nil {
			return wrap(err)
		}
	}
	owner, since := keyring.Owner{Namespace: s.access.Namespace, User: id}, s.now()
	if err := s.ring.Mark(ctx, owner, since); err != nil {
		return wrap(err)
	}
	var signed Receipt
	err = s.deleteInPortions(ctx, false, func(tx db.Tx, v viewer, p trash.Portion) (bool, error) {
		done, err := s.deleteUser(tx, v, id, o, since, p)
		if !done {
			return false, err
		}
		e := event{"user.delete", "user", id, audit.Details{"with_memories": o.WithMemories}}
		if err == nil && o.Receipt != nil {
			e.details["counts"], e.details["bytes"] = holdings.Counts, holdings.Bytes
			signed, err = s.sign(ctx, tx, holdings, e)
			return true, err
		}
		return true, s.note(ctx, tx, err, e)
	})
	switch {
	case err == nil && o.Receipt != nil: // a receipt must not prove what was rolled back
		*o.Receipt = signed
		err = s.eraseKey(ctx, owner, since, holdings, o.Receipt)
	case err == nil: // otherwise the key is needed, or a later call erases it
		err = s.eraseKey(ctx, owner, since, holdings, nil)
	case errors.Is(err, ErrConflict): // nothing was deleted
		if failed := s.ring.Unmark(context.WithoutCancel(ctx), owner); failed != nil {
			s.log.Warn("the key ring still marks a user as leaving, although the deletion was rejected", "error", failed)
		}
	}
	return wrap(err)
}

// deleteUser deletes one portion, and reports whether it was the last. The row left behind counts as changed at the
// time since or later.
func (s *Store) deleteUser(tx db.Tx, v viewer, id string, o DeletionOptions, since int64,
	p trash.Portion) (done bool, err error) {
	u, err := findUser(tx, s.access.Namespace, id)
	if err != nil {
		return false, err
	}
	if !o.WithMemories {
		if err := checkOwnsNothing(tx, v, u); err != nil {
			return false, err
		}
	}
	if u.Name != "" { // a user without an account disappears once disabled, so that comes last
		if err := disable(tx, u.row, true, s.now()); err != nil {
			return false, err
		}
		if err := s.checkAdminLeft(tx, u); err != nil && since != deletedBefore {
			return false, err
		}
	}
	t := s.newTrasher(tx, viewer{User: u.row}, p)
	t.Forever = true
	if done, err = t.EraseMemoriesOf(u.row, p); err != nil || !done {
		return false, err
	}
	projects, err := db.Column[string](tx, `SELECT uid FROM project WHERE owner_id = ?`, u.row)
	if err != nil {
		return false, err
	}
	for _, id := range projects {
		whole := DeletionOptions{WithMemories: true, Erase: true}
		if done, err = s.deleteProject(tx, viewer{User: u.row}, ProjectRef{ID: id}, whole, p); err != nil || !done {
			return false, err
		}
	}
	if err := t.EmptyUser(u.row); err != nil {
		return false, err
	}
	// A call that started as this user and finishes later must not leave a valid token behind.
	return true, disable(tx, u.row, true, max(s.now(), since))
}

// checkOwnsNothing refuses a user who owns anything that others may use. Empty collections and expired memories do not
// count.
func checkOwnsNothing(tx db.Tx, v viewer, u storedUser) error {
	memories, projects, files, err := trash.OwnedBy(tx, v, u.row)
	if err == nil && memories+projects+files > 0 {
		return newError(KindConflict, "user",
			"{} %s has %s, %s and %s; delete them first, or delete the user together with all of that, and with what others "+
				"have stored in these projects", show(cmp.Or(u.Name, u.ID)), counted(memories, "memory", "memories"),
			counted(projects, "project", "projects"), counted(files, "file", "files"))
	}
	return err
}

// counted returns a number with its noun.
func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}
