package souvenir

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/audit"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/keyring"
	"github.com/souvenir-ai/souvenir/internal/receipt"
	"github.com/souvenir-ai/souvenir/internal/trash"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Accounts manages users and their credentials: identities, invitations, sign-ins, MCP tokens, and the clients, grants,
// codes and keys of OAuth. Get it with [Store.Accounts].
//
// On the Store that [Open] returned it manages all accounts. On a view it is limited to the account of the view's user:
// their password, identities, sign-ins, tokens, clients and grants, and the invitations to projects that they received.
// Other methods return ErrForbidden there: methods that manage users and invitations to accounts, check credentials,
// sign a user in or look up any client, and those by which clients register and get tokens. On a view limited to
// projects, all but Me do.
type Accounts struct {
	s *Store
}

// Accounts returns the methods for users and their credentials.
func (s *Store) Accounts() *Accounts {
	return &Accounts{s.handled("Accounts")}
}

// Namespace returns the methods for the users of a namespace, named as in [Access].Namespace; for the default one it
// returns the same as [Store.Accounts]. They add, list, change and delete users, and manage and check passwords,
// sign-ins and MCP tokens: each only finds users of that namespace. Methods that the server needs for its users (OAuth,
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
	return &Accounts{&in}
}

// Namespaces returns the names of all namespaces that have users, except the default one, in order. It is for the Store
// that [Open] returned.
func (h *Accounts) Namespaces(ctx context.Context) ([]string, error) {
	s, err := h.operator(ctx, "Namespaces")
	if err != nil {
		return nil, err
	}
	all := []string{}
	err = s.readStore(ctx, func(tx db.Tx) (err error) { // along the index, with a step for each
		all, err = db.Column[string](tx, `WITH RECURSIVE found (name) AS (
			SELECT min(namespace) FROM users WHERE namespace > '' UNION ALL
			SELECT (SELECT min(namespace) FROM users WHERE namespace > found.name) FROM found WHERE found.name IS NOT NULL)
			SELECT name FROM found WHERE name IS NOT NULL ORDER BY name`)
		return err
	})
	return all, err
}

// serving is operator for methods that only the default namespace has.
func (h *Accounts) serving(ctx context.Context, method string) (*Store, error) {
	s, err := h.operator(ctx, method)
	return s, cmp.Or(err, s.checkServes(method))
}

// servingOwn is own for methods that only the default namespace has.
func (h *Accounts) servingOwn(ctx context.Context, method string) (*Store, error) {
	s, err := h.own(ctx, method)
	return s, cmp.Or(err, s.checkServes(method))
}

// checkServes refuses methods that only the default namespace has, in which the server works.
func (s *Store) checkServes(what string) error {
	if s.access.Namespace == defaultNamespace {
		return nil
	}
	return newError(KindForbidden, "", "%s is for the default namespace, in which the server works; this is %s", what,
		show(s.access.Namespace))
}

// operator returns the store for a method about all accounts, and refuses it on a view.
func (h *Accounts) operator(ctx context.Context, method string) (*Store, error) {
	if err := h.s.outside(ctx, method); err != nil {
		return h.s, err
	}
	return h.s, h.s.checkOperator(method)
}

// own returns the store for a method about the user's account, and refuses it on a view limited to projects.
func (h *Accounts) own(ctx context.Context, method string) (*Store, error) {
	if err := h.s.outside(ctx, method); err != nil {
		return h.s, err
	}
	return h.s, h.s.checkAccount(method)
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
	return own, newError(KindForbidden, "user", "{} is %s; a view of a user is for that user alone", show(idOrName))
}

// checkHasAccount refuses a user without an account.
func (u storedUser) checkHasAccount() error {
	if u.Name != "" {
		return nil
	}
	return asGo[Access](newError(KindConflict, "user", "{} %s has no account; add one with this id first", show(u.ID)))
}

// DeleteUser deletes a user's account with its sign-ins, tokens, OAuth grants and clients, preferences and memberships.
// Deleting the last enabled admin is ErrConflict. The id stays known to the store: an account added with it later, or a
// view made with it, starts empty. Memories are deleted in batches of a thousand, so that other writers get their turn;
// after an error the user may be disabled and some memories gone, and a second call deletes the rest.
func (h *Accounts) DeleteUser(ctx context.Context, idOrName string, options *DeleteOptions) (err error) {
	defer inGo[DeleteOptions](&err, "user", "idOrName")
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
	owner := keyring.Owner{Namespace: s.access.Namespace, User: id}
	if err := s.ring.Mark(ctx, owner); err != nil {
		return wrap(err)
	}
	var signed Receipt
	err = s.deleteInPortions(ctx, false, func(tx db.Tx, _ viewer, p trash.Portion) (bool, error) {
		done, err := s.deleteUser(tx, id, o, p)
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
	case err == nil && o.Receipt != nil: // a receipt of what was rolled back would prove what never was
		*o.Receipt = signed
		err = s.eraseKey(ctx, owner, holdings, o.Receipt)
	case err == nil: // otherwise the key is needed, or a later call erases it
		err = s.eraseKey(ctx, owner, holdings, nil)
	case errors.Is(err, ErrConflict): // nothing was deleted
		if failed := s.ring.Unmark(context.WithoutCancel(ctx), owner); failed != nil {
			s.log.Warn("the ring still marks a user as leaving, whose deletion was refused", "error", failed)
		}
	}
	return wrap(err)
}

// deleteUser deletes one portion, and reports whether that was all.
func (s *Store) deleteUser(tx db.Tx, id string, o DeleteOptions, p trash.Portion) (done bool, err error) {
	u, err := findUser(tx, s.access.Namespace, id)
	if err != nil {
		return false, err
	}
	if !o.WithMemories {
		if err := checkOwnsNothing(tx, u); err != nil {
			return false, err
		}
	}
	if u.Name != "" { // a user without an account disappears once disabled, so that comes last
		if err := disable(tx, u.row, true, s.now()); err != nil {
			return false, err
		}
		if err := s.checkAdminLeft(tx, u); err != nil {
			return false, err
		}
	}
	t := s.newTrasher(tx, viewer{User: u.row}, p)
	t.Forever = true
	if done, err = t.EraseTrashOf(u.row, p); err != nil || !done {
		return false, err
	}
	done, err = t.Memories(0, `(p.collection_id IN (SELECT id FROM collection `+
		`WHERE owner_id = ?1) OR p.project_id IN (SELECT id FROM project WHERE owner_id = ?1))`, u.row)
	if err != nil || !done {
		return false, err
	}
	if _, err := tx.Exec(`DELETE FROM collection WHERE owner_id = ?`, u.row); err != nil {
		return false, err
	}
	projects, err := db.Column[string](tx, `SELECT uid FROM project WHERE owner_id = ?`, u.row)
	if err != nil {
		return false, err
	}
	for _, id := range projects {
		whole := DeleteOptions{WithMemories: true, ForGood: true}
		if done, err = s.deleteProject(tx, viewer{User: u.row}, ProjectRef{ID: id}, whole, p); err != nil || !done {
			return false, err
		}
	}
	for _, statement := range emptyUser {
		if _, err := tx.Exec(statement, u.row); err != nil {
			return false, err
		}
	}
	// A call that started as this user and finishes later must not leave a valid token behind.
	return true, disable(tx, u.row, true, s.now())
}

// checkOwnsNothing refuses a user who owns anything that others may use. Empty collections do not count.
func checkOwnsNothing(tx db.Tx, u storedUser) error {
	var memories, projects, files int64
	err := tx.QueryRow(`SELECT
		(SELECT coalesce(sum(p.memories), 0) FROM partition p JOIN collection c ON c.id = p.collection_id
		WHERE c.owner_id = ?1 AND c.name <> ''),
		(SELECT count(*) FROM project WHERE owner_id = ?1), (SELECT count(*) FROM file WHERE owner_id = ?1
		AND state = 'stored')`, u.row).
		Scan(&memories, &projects, &files)
	if err == nil && memories+projects+files > 0 {
		return newError(KindConflict, "user",
			"{} %s has %d memories, %d projects and %d files; delete them first, or delete the user together with all of "+
				"that, and with what others have stored in these projects",
			show(cmp.Or(u.Name, u.ID)), memories, projects, files)
	}
	return err
}

// emptyUser deletes what remains of a user (?1) besides memories and projects. The row itself stays: views remember it,
// and files are deleted after it.
var emptyUser = []string{
	`DELETE FROM trash WHERE kind = 'file' AND 'trash/' || id IN (SELECT uid FROM file WHERE owner_id = ?1 ` +
		`AND state = 'trashed')`,
	`UPDATE file SET state = 'leaving', memory_id = NULL, project_id = NULL WHERE owner_id = ?1`,
	`DELETE FROM project_member WHERE user_id = ?1`,
	`DELETE FROM project_invitation WHERE sender_id = ?1`,
	`UPDATE project_invitation SET recipient_id = NULL WHERE recipient_id = ?1`,
	`DELETE FROM declined_invitation WHERE ?1 IN (user_id, sender_id)`,
	`DELETE FROM blocked_sender WHERE ?1 IN (user_id, sender_id)`,
	`DELETE FROM external_identity WHERE user_id = ?1`,
	`DELETE FROM preference WHERE user_id = ?1`,
	`DELETE FROM session WHERE user_id = ?1`,
	`DELETE FROM activity WHERE user_uid = (SELECT uid FROM users WHERE id = ?1)
		AND namespace = (SELECT namespace FROM users WHERE id = ?1)`,
	`DELETE FROM invitation WHERE created_by = ?1 AND used_at IS NULL`,
	`DELETE FROM token WHERE user_id = ?1`,
	`DELETE FROM oauth_grant WHERE user_id = ?1`,
	`DELETE FROM oauth_client WHERE owner_id = ?1`,
	`UPDATE users SET name = NULL, name_key = NULL, email = NULL, role = 'user', password = NULL WHERE id = ?1`,
}

// listed is the condition for a user that lists include: one with an account, or with anything in the store. A call
// that stored nothing leaves a row, too.
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
	Offset   int    // users to skip, 0 or more; past the last there are none
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
	defer inGo[UserQuery](&err)
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

// lastSeen returns when credentials of users (rows) were last used.
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
