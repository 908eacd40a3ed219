package souvenir

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/souvenir-ai/souvenir/internal/auth/browsermark"
	"github.com/souvenir-ai/souvenir/internal/auth/secretvalue"
	"github.com/souvenir-ai/souvenir/internal/auth/serverkeys"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/redact"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/internal/transfer"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// People's sign-ins in browsers, and the marks by which a browser of theirs is known again.

// SignIn is a person's sign-in in a browser.
type SignIn struct {
	ID         string    `json:"id"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at"` // to the minute
	ExpiresAt  time.Time `json:"expires_at"`   // 14 days after the last use, and at most 90 days after the sign-in
	UserAgent  string    `json:"user_agent"`   // the User-Agent that the browser sent; empty if none

	// ConfirmedAt is when the person last proved their identity: at the sign-in, or with [Accounts.ConfirmSignIn].
	ConfirmedAt time.Time `json:"confirmed_at"`
}

// NewSignIn describes the sign-in of a user whose credentials have been checked.
type NewSignIn struct {
	User string // id or name of a user with an account

	// UserAgent is the browser's User-Agent header, which lets people tell their sign-ins apart. It is stored without
	// invisible characters, up to 256 bytes.
	UserAgent string

	// Replaces is the id of a sign-in of the same user in the same browser to end; credentials made in it count as made
	// in the new one. Any other id, or an empty one, ends nothing.
	Replaces string

	// Confirmed is when the person proved their identity, if earlier than now, such as at a provider where they signed in
	// before. Zero means now.
	Confirmed time.Time

	// Since is when checking the credentials began, by the store's clock. If the account has changed after that, for
	// example its password, the sign-in is refused: the credentials checked may no longer be valid. Zero means no
	// comparison.
	Since time.Time
}

// AddedSignIn is a new sign-in with its value, which can never be seen again.
type AddedSignIn struct {
	SignIn
	Value string `json:"session"` // ses_ and 43 letters and digits, for a cookie

	// Mark is for a second cookie, which the browser keeps for at most a year, even after the sign-in has ended. It
	// does not sign in: it only proves to [Accounts.CheckBrowser] that the user has signed in in this browser before.
	Mark string `json:"mark"`
}

// Format prints the sign-in without its value and mark.
func (a AddedSignIn) Format(f fmt.State, _ rune) { redact.Format(f, a, "Value", "Mark") }

// BrowserCheck is a browser's claim that a user has signed in in it before.
type BrowserCheck struct {
	User string // id of a user
	Mark string // [AddedSignIn].Mark
}

// SignOutOptions change how sign-ins are revoked. Nil means the zero value.
type SignOutOptions struct {
	// KeepMade keeps the tokens made and the applications authorized in the revoked sign-ins: an ordinary sign-out. False
	// ends them, too: an intruder may have made them. Tokens made WithSignIn end either way.
	KeepMade bool
}

const (
	signInStart    = "ses_"
	signInIdle     = 14 * 24 * time.Hour
	signInLifetime = 90 * 24 * time.Hour
	maxSignIns     = 100 // of a user
	maxUserAgent   = 256 // bytes
)

// AddSignIn records that a user has signed in in a browser. Only the answer contains its value; the store keeps a
// hash. When a user has more than 100 sign-ins, the least recently used one ends. An unknown user is ErrNotFound, one
// without an account ErrConflict; one who is disabled, or has been changed after Since, is ErrUnauthenticated.
func (h *Accounts) AddSignIn(ctx context.Context, n NewSignIn) (_ AddedSignIn, err error) {
	defer setGoNames[NewSignIn](&err)
	s, err := h.operator(ctx, "AddSignIn")
	if err != nil {
		return AddedSignIn{}, err
	}
	added := AddedSignIn{Value: secretvalue.WithStart(signInStart)}
	err = s.write(ctx, func(tx db.Tx, _ viewer) error {
		u, err := findUser(tx, s.access.Namespace, n.User)
		if err != nil {
			return err
		}
		if err := u.checkHasAccount(); err != nil {
			return err
		}
		if err := u.checkMaySignIn(tx, n.Since); err != nil {
			return err
		}
		if added.Mark, err = s.addMark(tx, s.marked(u.ID)); err != nil {
			return err
		}
		if added.SignIn, err = s.addSignIn(tx, u, n, added.Value); err != nil || n.Replaces == "" {
			return err
		}
		return replaceSignIn(tx, u, n.Replaces, added.ID)
	})
	if err != nil {
		return AddedSignIn{}, err
	}
	return added, nil
}

// marked returns a user in the form of a mark. Neither part has a zero byte.
func (s *Store) marked(user string) string {
	if s.access.Namespace == defaultNamespace {
		return user
	}
	return s.access.Namespace + "\x00" + user
}

// addMark returns a new mark of a user's browser.
func (s *shared) addMark(tx db.Tx, user string) (string, error) {
	now := s.now()
	key, err := markKey(tx, now)
	return browsermark.New(key.ID, key.Secret, user, kernel.ToTime(now)), err
}

// markKey returns the key that makes marks of browsers. It is replaced every 90 days.
func markKey(tx db.Tx, now int64) (serverkeys.Key, error) {
	if err := serverkeys.Retire(tx, markAlgorithm, now, now-browsermark.KeyLife.Microseconds()); err != nil {
		return serverkeys.Key{}, err
	}
	return serverkeys.CurrentOrNew(tx, markAlgorithm, browsermark.KeySize, now)
}

// Format prints the check without the mark.
func (c BrowserCheck) Format(f fmt.State, _ rune) { redact.Format(f, c, "Mark") }

// CheckBrowser reports whether the user has signed in before in the browser that sent a mark: nil, or
// ErrUnauthenticated. A mark ends after a year, and when the signing key is rotated. It works read-only, too.
func (h *Accounts) CheckBrowser(ctx context.Context, c BrowserCheck) (err error) {
	defer setGoNames[BrowserCheck](&err)
	s, err := h.operator(ctx, "CheckBrowser")
	if err != nil {
		return err
	}
	var key serverkeys.Key
	found := false
	err = s.readStore(ctx, func(tx db.Tx) (err error) {
		key, found, err = serverkeys.Find(tx, markAlgorithm, browsermark.KeyID(c.Mark))
		return err
	})
	if err == nil && (!found || !browsermark.Valid(c.Mark, key.Secret, s.marked(c.User), kernel.ToTime(s.now()))) {
		err = newError(KindUnauthenticated, "mark", "the mark is not from a browser in which this user has signed in")
	}
	return err
}

// checkMaySignIn refuses a user who is disabled, or whose account has changed since a time.
func (u storedUser) checkMaySignIn(tx db.Tx, since time.Time) error {
	if u.Disabled {
		return newError(KindUnauthenticated, "", "this user is disabled")
	}
	if since.IsZero() {
		return nil
	}
	changed, err := db.Column[int64](tx, `SELECT 1 FROM users WHERE id = ? AND updated_at > ?`, u.row, since.UnixMicro())
	if err == nil && len(changed) > 0 {
		return newError(KindUnauthenticated, "", "this account changed during the sign-in; sign in again")
	}
	return err
}

// replaceSignIn ends a sign-in that another one replaces, and moves the credentials made in it to the new one.
func replaceSignIn(tx db.Tx, u storedUser, old, fresh string) error {
	deleted, err := tx.Exec(`DELETE FROM session WHERE uid = ? AND user_id = ?`, old, u.row)
	if err != nil || deleted.RowsAffected == 0 {
		return err
	}
	for _, statement := range []string{`UPDATE token SET session = ? WHERE session = ?`,
		`UPDATE oauth_grant SET session = ? WHERE session = ?`} {
		if _, err := tx.Exec(statement, fresh, old); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) addSignIn(tx db.Tx, u storedUser, n NewSignIn, value string) (SignIn, error) {
	now := s.now()
	confirmed := now
	if !n.Confirmed.IsZero() {
		confirmed = max(1, min(now, n.Confirmed.UnixMicro())) // 0 stands for the time of the sign-in
	}
	added := SignIn{
		ID: s.newID(), CreatedAt: kernel.ToTime(now), LastUsedAt: kernel.ToTime(now),
		ExpiresAt:   kernel.ToTime(now + signInIdle.Microseconds()),
		UserAgent:   cleanUserAgent(n.UserAgent),
		ConfirmedAt: kernel.ToTime(confirmed),
	}
	if _, err := tx.Exec(`DELETE FROM session WHERE user_id = ?1 AND (expires_at <= ?2 OR id IN
		(SELECT id FROM session WHERE user_id = ?1 AND expires_at > ?2 ORDER BY last_used_at DESC,
		id DESC LIMIT ?3 OFFSET ?4))`, u.row, now, math.MaxInt64, maxSignIns-1); err != nil {
		return SignIn{}, err
	}
	_, err := tx.Exec(`INSERT INTO session (uid, user_id, hash, user_agent, created_at, last_used_at, expires_at, `+
		`confirmed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		added.ID, u.row, secretvalue.Hash(value), added.UserAgent, now, now, added.ExpiresAt.UnixMicro(), confirmed)
	return added, err
}

// cleanUserAgent reduces a User-Agent to one line of visible text.
func cleanUserAgent(userAgent string) string {
	const enough = 4 * maxUserAgent // headers may be long, and all past this is cut off anyway
	userAgent = strings.ToValidUTF8(userAgent[:min(len(userAgent), enough)], "")
	userAgent = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r) || foldname.Unseen(r):
			return -1
		}
		return r
	}, userAgent)), " ")
	return strings.TrimSpace(shorten.Bytes(userAgent, maxUserAgent))
}

// storedSignIn is a sign-in with its rows.
type storedSignIn struct {
	SignIn
	row, user int64
}

// loadSignIns reads the sign-ins e that satisfy a condition, which may end with an order.
func loadSignIns(tx db.Tx, condition string, args ...any) ([]storedSignIn, error) {
	var found []storedSignIn
	err := tx.Each(func(row db.Rows) error {
		var e storedSignIn
		err := row.Scan(&e.row, &e.user, &e.ID, &e.UserAgent, kernel.TimeInto(&e.CreatedAt), kernel.TimeInto(&e.LastUsedAt),
			kernel.TimeInto(&e.ExpiresAt), kernel.TimeInto(&e.ConfirmedAt))
		found = append(found, e)
		return err
	}, `SELECT e.id, e.user_id, e.uid, e.user_agent, e.created_at, e.last_used_at, e.expires_at,
			coalesce(nullif(e.confirmed_at, 0), e.created_at)
		FROM session e WHERE `+condition, args...)
	return found, err
}

// CheckSignIn returns the user of a sign-in, with all scopes of a person, which include admin for admins only. A
// sign-in that is unknown, ended or expired, or whose user is disabled, is ErrUnauthenticated, with the same message.
// Each use extends a sign-in to 14 days from then, up to 90 days after the sign-in. It works read-only, too, but then
// does not extend the sign-in.
//
// The sign-in is looked up by its hash: see [Accounts.CheckToken].
func (h *Accounts) CheckSignIn(ctx context.Context, value string) (_ Principal, err error) {
	defer setGoNames[struct{}](&err, "value", "value")
	s, err := h.operator(ctx, "CheckSignIn")
	if err != nil {
		return Principal{}, err
	}
	refused := newError(KindUnauthenticated, "",
		"the session is not valid; it may have expired or been revoked, so sign in again")
	if !secretvalue.HasForm(signInStart, value) {
		return Principal{}, refused
	}
	now := s.now()
	var found []storedSignIn
	var users []storedUser
	err = s.readStore(ctx, func(tx db.Tx) (err error) {
		if found, err = loadSignIns(tx, `e.hash = ? AND e.expires_at > ?`, secretvalue.Hash(value), now); err != nil ||
			len(found) == 0 {
			return err
		}
		users, err = loadUsers(tx, `u.id = ? AND u.namespace = ?`, found[0].user, s.access.Namespace)
		return err
	})
	switch {
	case err != nil:
		return Principal{}, err
	case len(users) == 0 || s.credentialsRefused(s.access.Namespace, users[0].User):
		return Principal{}, refused
	}
	s.noteSignIn(ctx, found[0], now)
	scopes := Scopes()
	if users[0].Role != RoleAdmin {
		scopes = slices.DeleteFunc(scopes, func(scope Scope) bool { return scope == ScopeAdmin })
	}
	return Principal{User: users[0].User, Scopes: scopes, Access: Access{User: users[0].ID,
		Namespace: s.access.Namespace}, SignInID: found[0].ID,
		ConfirmedAt: found[0].ConfirmedAt}, nil
}

// noteSignIn records the use of a sign-in, and extends it.
func (s *Store) noteSignIn(ctx context.Context, e storedSignIn, now int64) {
	used := e.LastUsedAt.UnixMicro()
	expires := min(now+signInIdle.Microseconds(), e.CreatedAt.Add(signInLifetime).UnixMicro())
	s.noteUse(ctx, use{of: "session", id: e.ID, last: &used, now: now}, func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE session SET last_used_at = ?, expires_at = ? WHERE id = ? AND uid = ? `+
			`AND last_used_at < ?1`, now, expires, e.row, e.ID)
		return err
	})
}

// SignIns returns the user's sign-ins that have not expired, the newest first. A view that is limited to projects may
// not call it.
func (h *Accounts) SignIns(ctx context.Context) ([]SignIn, error) {
	s, err := h.own(ctx, "SignIns")
	if err != nil {
		return nil, err
	}
	all := []SignIn{}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		found, err := loadSignIns(tx, `e.user_id = ? AND e.expires_at > ? ORDER BY e.created_at DESC, e.id DESC`, v.User,
			s.now())
		for _, e := range found {
			all = append(all, e.SignIn)
		}
		return err
	})
	return all, err
}

// ConfirmSignIn records that the person using a sign-in of the view's user has just proved their identity again. A
// sign-in that is unknown, or has ended, is ErrNotFound. A view that is limited to projects may not call it.
func (h *Accounts) ConfirmSignIn(ctx context.Context, id string) (err error) {
	defer setGoNames[struct{}](&err, "id", "id")
	s, err := h.own(ctx, "ConfirmSignIn")
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		now := s.now()
		result, err := tx.Exec(`UPDATE session SET confirmed_at = ? WHERE uid = ? AND user_id = ? AND expires_at > ?`, now,
			id, v.User, now)
		if err == nil && result.RowsAffected == 0 {
			return noSignIn(id)
		}
		return err
	})
}

func noSignIn(id string) error {
	return newError(KindNotFound, "id", "{} %s is not a session of this user", show(id))
}

// RevokeSignIn ends one of the user's sign-ins at once, with the tokens made and the applications authorized in it,
// unless the options keep them. A sign-in that is unknown, or has ended, is ErrNotFound. A view that is limited to
// projects may not call it.
func (h *Accounts) RevokeSignIn(ctx context.Context, id string, options *SignOutOptions) (err error) {
	defer setGoNames[SignOutOptions](&err, "id", "id")
	s, err := h.own(ctx, "RevokeSignIn")
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		ended, err := s.revokeSignIns(tx, options, `e.user_id = ?1 AND e.uid = ?2`, v.User, id)
		if err == nil && ended == 0 {
			return noSignIn(id)
		}
		return err
	})
}

// RevokeSignIns ends all sign-ins of the user at once, except the one with an id (empty: none stays), with the tokens
// made and the applications authorized in them, unless the options keep them. It is not an error if there are none. A
// view that is limited to projects may not call it.
func (h *Accounts) RevokeSignIns(ctx context.Context, except string, options *SignOutOptions) (err error) {
	defer setGoNames[SignOutOptions](&err, "except", "except")
	s, err := h.own(ctx, "RevokeSignIns")
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		_, err := s.revokeSignIns(tx, options, `e.user_id = ?1 AND e.uid <> ?2`, v.User, except)
		return err
	})
}

// revokeSignIns deletes the sign-ins e for which a condition holds, and counts them.
func (s *Store) revokeSignIns(tx db.Tx, options *SignOutOptions, condition string, args ...any) (int64, error) {
	if options == nil || !options.KeepMade {
		if err := revokeAddedIn(tx, s.now(), condition, args...); err != nil {
			return 0, err
		}
	}
	result, err := tx.Exec(`DELETE FROM session WHERE id IN (SELECT e.id FROM session e WHERE `+condition+`)`, args...)
	return result.RowsAffected, err
}

// deleteSignIns deletes the sign-ins of a user (a row), except the one with an id.
func deleteSignIns(tx db.Tx, user int64, except string) error {
	_, err := tx.Exec(`DELETE FROM session WHERE user_id = ? AND uid <> ?`, user, except)
	return err
}

// revokeAddedIn revokes the credentials added in the sign-ins e for which a condition holds: tokens, with all their
// descendants, and grants of applications.
func revokeAddedIn(tx db.Tx, now int64, condition string, args ...any) error {
	ids, err := db.Column[string](tx, `SELECT e.uid FROM session e WHERE `+condition, args...)
	if err != nil {
		return err
	}
	for _, id := range ids {
		for _, statement := range []string{
			`UPDATE token SET revoked_at = ? WHERE session = ? AND session <> '' AND revoked_at IS NULL`,
			`UPDATE oauth_grant SET revoked_at = ? WHERE session = ? AND session <> '' AND revoked_at IS NULL`,
		} {
			if _, err := tx.Exec(statement, now, id); err != nil {
				return err
			}
		}
	}
	return deactivateOrphans(tx, now)
}

// purgeSignIns deletes the sign-ins that have expired, and counts them.
func purgeSignIns(tx db.Tx, now int64) (int64, error) {
	result, err := tx.Exec(`DELETE FROM session WHERE expires_at <= ?`, now)
	return result.RowsAffected, err
}

// signInRecord describes the row of a sign-in. Exports leave sign-ins out: after a move to another file, people sign
// in again.
func signInRecord() transfer.Record {
	return transfer.Record{
		Table: "session", Key: 1,
		Fields: []transfer.RecordField{
			{Name: "id", Check: valid.Name},
			{Name: "hash", Form: transfer.BytesForm, Check: transfer.CheckHash},
			{Name: "user_agent", Check: transfer.CheckText},
			{Name: "created_at", Form: transfer.TimeForm},
			{Name: "last_used_at", Form: transfer.TimeForm},
			{Name: "expires_at", Form: transfer.TimeForm},
			{Name: "confirmed_at", Form: transfer.TimeForm},
		},
		Selection: `SELECT uid, hash, user_agent, created_at, last_used_at, expires_at, confirmed_at FROM session`,
		Ordered:   `id`,
	}
}
