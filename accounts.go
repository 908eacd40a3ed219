package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/audit"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/jsonobject"
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
// Other methods return ErrForbidden there: those that manage users and invitations to accounts, that check credentials,
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

// AccessKind is a kind of access on behalf of a user.
type AccessKind string

// The values of [AccessKind].
const (
	AccessSignIns AccessKind = "sessions" // browsers where the user is signed in
	AccessGrants  AccessKind = "grants"   // applications that the user authorized through OAuth, with codes and tokens
	AccessTokens  AccessKind = "tokens"   // MCP tokens
)

// AccessKinds returns all kinds.
func AccessKinds() []AccessKind { return []AccessKind{AccessSignIns, AccessGrants, AccessTokens} }

// EndAccess revokes kinds of the user's access (at least one) at once, except the sign-in with an id, such as the
// caller's own (empty: no exception). The user can authorize applications again, and new tokens work. A view that is
// limited to projects may not call it.
func (h *Accounts) EndAccess(ctx context.Context, except string, kinds []AccessKind) (err error) {
	defer inGo[struct{}](&err, "kinds", "kinds")
	s, err := h.own(ctx, "EndAccess")
	if err != nil {
		return err
	}
	if len(kinds) == 0 {
		return invalid("kinds", "{} is empty; give some of %s", oneOf(AccessKinds()))
	}
	if err := checkKinds("kinds", kinds); err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		return s.note(ctx, tx, s.endKinds(tx, v.User, except, kinds),
			event{"access.end", "user", s.access.User, audit.Details{"kinds": kinds}})
	})
}

func checkKinds(argument string, kinds []AccessKind) error {
	for _, kind := range kinds {
		if !slices.Contains(AccessKinds(), kind) {
			return invalid(argument, "{} has %s; allowed are %s", show(string(kind)), oneOf(AccessKinds()))
		}
	}
	return nil
}

// endKinds revokes kinds of access of a user (a row), except the sign-in with an id.
func (s *Store) endKinds(tx db.Tx, user int64, except string, kinds []AccessKind) error {
	for _, kind := range kinds {
		var err error
		switch kind {
		case AccessSignIns:
			err = endSignIns(tx, user, except)
		case AccessGrants:
			err = endGrants(tx, user, s.now())
		case AccessTokens:
			err = endTokens(tx, user, s.now())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// disable locks a user out, with every program that acts for them, or lets the user in again.
func disable(tx db.Tx, row int64, disabled bool, now int64) error {
	if !disabled {
		_, err := tx.Exec(`UPDATE users SET disabled_at = NULL, updated_at = ? WHERE id = ?`, now, row)
		return err
	}
	if _, err := tx.Exec(`UPDATE users SET disabled_at = ?1, updated_at = ?1 WHERE id = ?2`, now, row); err != nil {
		return err
	}
	if err := endSignIns(tx, row, ""); err != nil {
		return err
	}
	if err := endTokens(tx, row, now); err != nil {
		return err
	}
	return endGrants(tx, row, now)
}

// Pausing: a user stops a client for a while, without ending its access. What it holds stays valid, so that it goes on
// where it was once it may: its refresh token can be renewed meanwhile, but every access is refused.

// TokenUpdate describes a change to an MCP token. Nil fields change nothing.
type TokenUpdate struct {
	Paused *bool // true: the token, and all that was made through it, is refused until it is false again
}

// GrantUpdate describes a change to an OAuth grant. Nil fields change nothing.
type GrantUpdate struct {
	Paused *bool // true: the application, and all tokens that it made, is refused with this grant until it is false again
}

// UpdateToken changes one of the user's tokens, and returns it. Resuming a token resumes what was paused with it. A
// token that is unknown, or has ended, is ErrNotFound. A view that is limited to projects may not call it.
func (h *Accounts) UpdateToken(ctx context.Context, id string, u TokenUpdate) (_ Token, err error) {
	defer inGo[TokenUpdate](&err, "id", "id")
	s, err := h.own(ctx, "UpdateToken")
	if err != nil {
		return Token{}, err
	}
	var updated Token
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		find := func() (storedToken, error) {
			found, err := loadTokens(tx, s.now(), `t.uid = ? AND t.user_id = ? AND NOT `+tokenEnded, valid.CanonicalID(id),
				v.User)
			if err == nil && len(found) == 0 {
				err = newError(KindNotFound, "id", "{} %s is not a token of this user", show(id))
			}
			return append(found, storedToken{})[0], err
		}
		t, err := find()
		if err == nil && u.Paused != nil && *u.Paused == t.PausedAt.IsZero() {
			err = s.note(ctx, tx, pauseToken(tx, t, s.now()), event{pausing("token", *u.Paused), "token", t.ID, nil})
		}
		if err == nil {
			t, err = find()
		}
		updated = t.Token
		return err
	})
	return updated, err
}

// pauseToken pauses a token with all that was made through it, or resumes it with what was paused with it.
func pauseToken(tx db.Tx, t storedToken, now int64) error {
	const made = `WITH RECURSIVE made (id) AS (
		SELECT id FROM token WHERE id = ?1 UNION SELECT t.id FROM token t JOIN made ON t.parent_id = made.id) `
	if t.PausedAt.IsZero() {
		_, err := tx.Exec(made+`UPDATE token SET paused_at = ?2 WHERE id IN (SELECT id FROM made) AND paused_at IS NULL`,
			t.row, now)
		return err
	}
	_, err := tx.Exec(made+`UPDATE token SET paused_at = NULL WHERE id IN (SELECT id FROM made) AND paused_at = ?2`,
		t.row, t.PausedAt.UnixMicro())
	return err
}

// UpdateGrant changes a grant of the view's user, and returns it. A grant that is unknown, or was revoked, is
// ErrNotFound.
func (h *Accounts) UpdateGrant(ctx context.Context, id string, u GrantUpdate) (_ Grant, err error) {
	defer inGo[GrantUpdate](&err, "grant_id", "id")
	s, err := h.servingOwn(ctx, "UpdateGrant")
	if err != nil {
		return Grant{}, err
	}
	var updated Grant
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		find := func() (storedGrant, error) {
			found, err := loadGrants(tx, `g.uid = ? AND g.user_id = ? AND g.revoked_at IS NULL`, id, v.User)
			if err == nil && len(found) == 0 {
				err = newError(KindNotFound, "id", "{} %s is not an OAuth grant of this user, or was revoked", show(id))
			}
			return append(found, storedGrant{})[0], err
		}
		g, err := find()
		if err == nil && u.Paused != nil && *u.Paused == g.PausedAt.IsZero() {
			_, err = tx.Exec(`UPDATE oauth_grant SET paused_at = CASE WHEN paused_at IS NULL THEN ? END WHERE id = ?`, s.now(),
				g.row)
			err = s.note(ctx, tx, err, event{pausing("grant", *u.Paused), "grant", g.ID, nil})
		}
		if err == nil {
			g, err = find()
		}
		updated = g.Grant
		return err
	})
	return updated, err
}

// pausing returns the action of pausing or resuming a kind of access.
func pausing(kind string, paused bool) string {
	if paused {
		return kind + ".pause"
	}
	return kind + ".resume"
}

// checkGoing refuses a paused grant.
func (g storedGrant) checkGoing() error {
	if g.PausedAt.IsZero() {
		return nil
	}
	return pausedAccess()
}

// pausedAccess is the error for a credential that its user has paused.
func pausedAccess() error {
	return newError(KindForbidden, "",
		"the user has paused this access; they can resume it in the dashboard, on the page of tokens or of applications")
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

// MaxPreferences limits the size of a user's preferences, in bytes of JSON. They are an object in which programs with a
// user interface keep their settings; the store itself does not read it.
const MaxPreferences = 64 << 10

// Preferences returns the user's preferences: an empty map for none. Numbers are float64 where that loses nothing, else
// json.Number. A view limited to projects may not call it.
func (s *Store) Preferences(ctx context.Context) (map[string]any, error) {
	if err := s.checkAccount("Preferences"); err != nil {
		return nil, err
	}
	var found map[string]any
	err := s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		found, err = preferences(tx, v)
		return err
	})
	return found, err
}

// SetPreferences replaces the user's preferences and returns them; nil clears them. More than 64 KiB as JSON are
// ErrTooLarge. A view limited to projects may not call it.
func (s *Store) SetPreferences(ctx context.Context, all map[string]any) (_ map[string]any, err error) {
	defer inGo[struct{}](&err, "preferences", "all")
	return s.changePreferences(ctx, "SetPreferences", all, func(_, given map[string]any) any { return given })
}

// UpdatePreferences applies a JSON merge patch (RFC 7396) to the user's preferences and returns the result: keys
// replace, null removes, objects merge. Concurrent patches all take effect. Otherwise it is like SetPreferences.
func (s *Store) UpdatePreferences(ctx context.Context, patch map[string]any) (_ map[string]any, err error) {
	defer inGo[struct{}](&err, "preferences", "patch")
	return s.changePreferences(ctx, "UpdatePreferences", patch,
		func(present, given map[string]any) any { return jsonobject.MergePatch(present, given) })
}

func (s *Store) changePreferences(ctx context.Context, what string, given map[string]any,
	change func(present, given map[string]any) any) (map[string]any, error) {
	if err := s.checkAccount(what); err != nil {
		return nil, err
	}
	if _, err := encodePreferences(given); err != nil {
		return nil, err
	}
	given, err := jsonobject.CanonicalJSON("preferences", given)
	if err != nil {
		return nil, err
	}
	var changed map[string]any
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		present, err := preferences(tx, v)
		if err != nil {
			return err
		}
		changed, _ = change(present, given).(map[string]any)
		if changed == nil {
			changed = map[string]any{}
		}
		encoded, err := encodePreferences(changed)
		if err != nil {
			return err
		}
		sealed, err := db.SealText(tx, v.User, db.PreferenceValue, string(encoded))
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO preference (user_id, value, updated_at) VALUES (?, ?, ?)
			ON CONFLICT (user_id) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`, v.User,
			sealed, s.now())
		return err
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// encodePreferences returns preferences as JSON, within their limit.
func encodePreferences(object map[string]any) ([]byte, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, invalid("preferences", "{} is not JSON: %v", err)
	}
	if len(encoded) > MaxPreferences {
		return nil, newError(KindTooLarge, "preferences", "{} is %d bytes as JSON; at most %d are allowed",
			len(encoded), MaxPreferences)
	}
	return encoded, nil
}

func preferences(tx db.Tx, v viewer) (map[string]any, error) {
	stored, err := db.Column[string](tx, `SELECT value FROM preference WHERE user_id = ?`, v.User)
	if err != nil || len(stored) == 0 {
		return map[string]any{}, err
	}
	object, err := jsonobject.Decode([]byte(stored[0]))
	if err == nil && object == nil {
		err = errors.New("null instead of an object")
	}
	if err != nil {
		return nil, damaged(err, "a user's preferences cannot be read")
	}
	return object, nil
}
