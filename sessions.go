package souvenir

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/redact"
	"github.com/souvenir-ai/souvenir/internal/transfer"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Session is a person's sign-in in a browser.
type Session struct {
	ID         string    `json:"id"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at"` // to the minute
	ExpiresAt  time.Time `json:"expires_at"`   // 14 days after the last use, and at most 90 days after the sign-in
	UserAgent  string    `json:"user_agent"`   // the User-Agent that the browser sent; empty if none

	// ConfirmedAt is when the person last proved their identity: at the sign-in, or with [Accounts.ConfirmSession].
	ConfirmedAt time.Time `json:"confirmed_at"`
}

// NewSession describes the sign-in of a user whose credentials have been checked.
type NewSession struct {
	User string // id or name of a user with an account

	// UserAgent is the browser's User-Agent header, which lets people tell their sessions apart. It is stored without
	// invisible characters, up to 256 bytes.
	UserAgent string

	// Replaces is the id of a session of the same user in the same browser to end; what was made in it counts as made in
	// the new one. Any other id, or an empty one, ends nothing.
	Replaces string

	// Confirmed is when the person proved their identity, if earlier than now, such as at a provider where they signed in
	// before. Zero means now.
	Confirmed time.Time

	// Since is when checking the credentials began, by the store's clock. If the account has changed after that, for
	// example its password, the sign-in is refused: the credentials checked may no longer be valid. Zero means no
	// comparison.
	Since time.Time
}

// AddedSession is a new session with its value, which can never be seen again.
type AddedSession struct {
	Session
	Value string `json:"session"` // ses_ and 43 letters and digits, for a cookie
}

// Format prints the session without its value.
func (a AddedSession) Format(f fmt.State, _ rune) { redact.Format(f, a, "Value") }

// AccessKind is a kind of access on behalf of a user.
type AccessKind string

// The values of [AccessKind].
const (
	AccessSessions AccessKind = "sessions" // browsers where the user is signed in
	AccessGrants   AccessKind = "grants"   // applications that the user authorized through OAuth, with codes and tokens
	AccessTokens   AccessKind = "tokens"   // MCP tokens
)

// AccessKinds returns all kinds.
func AccessKinds() []AccessKind { return []AccessKind{AccessSessions, AccessGrants, AccessTokens} }

// AccessEnd selects the access of a user to end.
type AccessEnd struct {
	Kinds       []AccessKind // at least one
	KeepSession string       // id of a session that stays, such as the caller's own; empty: none
}

// SessionSelection selects sessions to end.
type SessionSelection struct {
	Only   string // id of the one session that ends; empty: all
	Except string // id of a session that stays; empty: none

	// KeepMade keeps the tokens made and the applications authorized in these sessions: an ordinary sign-out. False ends
	// them, too: an intruder may have made them. Tokens made WithSession end either way.
	KeepMade bool
}

const (
	sessionStart    = "ses_"
	sessionIdle     = 14 * 24 * time.Hour
	sessionLifetime = 90 * 24 * time.Hour
	maxSessions     = 100 // of a user
	maxUserAgent    = 256 // bytes
)

// AddSession records that a user has signed in in a browser. Only the answer contains its value; the store keeps a
// hash. When a user has more than 100 sessions, the least recently used one ends. An unknown user is ErrNotFound, one
// without an account ErrConflict; one who is disabled, or has been changed after Since, is ErrUnauthenticated.
func (h *Accounts) AddSession(ctx context.Context, n NewSession) (AddedSession, error) {
	s, err := h.operator("AddSession")
	if err != nil {
		return AddedSession{}, err
	}
	added := AddedSession{Value: newValue(sessionStart)}
	err = s.write(ctx, func(tx db.Tx, _ viewer) error {
		u, err := findUser(tx, n.User)
		if err != nil {
			return err
		}
		if err := u.checkHasAccount(); err != nil {
			return err
		}
		if err := u.checkMaySignIn(tx, n.Since); err != nil {
			return err
		}
		if added.Session, err = s.addSession(tx, u, n, added.Value); err != nil || n.Replaces == "" {
			return err
		}
		return replaceSession(tx, u, n.Replaces, added.ID)
	})
	if err != nil {
		return AddedSession{}, err
	}
	return added, nil
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
		return newError(KindUnauthenticated, "", "this account was changed during the sign-in; sign in again")
	}
	return err
}

// replaceSession ends a session that another one replaces, and moves what was made in it to the new one.
func replaceSession(tx db.Tx, u storedUser, old, fresh string) error {
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

func (s *Store) addSession(tx db.Tx, u storedUser, n NewSession, value string) (Session, error) {
	now := s.now()
	confirmed := now
	if !n.Confirmed.IsZero() {
		confirmed = max(1, min(now, n.Confirmed.UnixMicro())) // 0 stands for the time of the sign-in
	}
	added := Session{
		ID: s.newID(), CreatedAt: kernel.ToTime(now), LastUsedAt: kernel.ToTime(now),
		ExpiresAt:   kernel.ToTime(now + sessionIdle.Microseconds()),
		UserAgent:   cleanUserAgent(n.UserAgent),
		ConfirmedAt: kernel.ToTime(confirmed),
	}
	if _, err := tx.Exec(`DELETE FROM session WHERE user_id = ?1 AND (expires_at <= ?2 OR id IN
		(SELECT id FROM session WHERE user_id = ?1 AND expires_at > ?2 ORDER BY last_used_at DESC,
		id DESC LIMIT ?3 OFFSET ?4))`, u.row, now, math.MaxInt64, maxSessions-1); err != nil {
		return Session{}, err
	}
	_, err := tx.Exec(`INSERT INTO session (uid, user_id, hash, user_agent, created_at, last_used_at, expires_at, `+
		`confirmed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		added.ID, u.row, digest(value), added.UserAgent, now, now, added.ExpiresAt.UnixMicro(), confirmed)
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
	if len(userAgent) <= maxUserAgent {
		return userAgent
	}
	end := maxUserAgent
	for !utf8.RuneStart(userAgent[end]) {
		end--
	}
	return strings.TrimSpace(userAgent[:end])
}

// storedSession is a session with its rows.
type storedSession struct {
	Session
	row, user int64
}

// loadSessions reads the sessions for which a condition on e holds (and what follows WHERE).
func loadSessions(tx db.Tx, condition string, args ...any) ([]storedSession, error) {
	var found []storedSession
	err := tx.Each(func(row db.Rows) error {
		var e storedSession
		var created, used, expires, confirmed int64
		err := row.Scan(&e.row, &e.user, &e.ID, &e.UserAgent, &created, &used, &expires, &confirmed)
		e.CreatedAt, e.LastUsedAt, e.ExpiresAt, e.ConfirmedAt = kernel.ToTime(created), kernel.ToTime(used),
			kernel.ToTime(expires),
			kernel.ToTime(cmp.Or(confirmed, created))
		found = append(found, e)
		return err
	}, `SELECT e.id, e.user_id, e.uid, e.user_agent, e.created_at, e.last_used_at, e.expires_at, e.confirmed_at `+
		`FROM session e WHERE `+condition, args...)
	return found, err
}

// CheckSession returns the user of a session, with all scopes of a person, which include admin for admins only. A
// session that is unknown, ended or expired, or whose user is disabled, is ErrUnauthenticated, with the same message.
// Each use extends a session to 14 days from then, up to 90 days after the sign-in. It works read-only, too, but then
// does not extend the session.
//
// The session is looked up by its hash: see [Accounts.CheckToken].
func (h *Accounts) CheckSession(ctx context.Context, value string) (Principal, error) {
	s, err := h.operator("CheckSession")
	if err != nil {
		return Principal{}, err
	}
	refused := newError(KindUnauthenticated, "",
		"the session is not valid; it may have expired or ended, so sign in again")
	if !isValue(sessionStart, value) {
		return Principal{}, refused
	}
	now := s.now()
	var sessions []storedSession
	var users []storedUser
	err = s.readStore(ctx, func(tx db.Tx) (err error) {
		if sessions, err = loadSessions(tx, `e.hash = ? AND e.expires_at > ?`, digest(value), now); err != nil ||
			len(sessions) == 0 {
			return err
		}
		users, err = loadUsers(tx, `u.id = ?`, sessions[0].user)
		return err
	})
	switch {
	case err != nil:
		return Principal{}, err
	case len(users) == 0 || users[0].Disabled:
		return Principal{}, refused
	}
	s.noteSession(ctx, sessions[0], now)
	scopes := Scopes()
	if users[0].Role != RoleAdmin {
		scopes = slices.DeleteFunc(scopes, func(scope Scope) bool { return scope == ScopeAdmin })
	}
	return Principal{User: users[0].User, Scopes: scopes, Access: Access{User: users[0].ID}, SessionID: sessions[0].ID,
		ConfirmedAt: sessions[0].ConfirmedAt}, nil
}

// noteSession records the use of a session, and extends it.
func (s *Store) noteSession(ctx context.Context, e storedSession, now int64) {
	used := e.LastUsedAt.UnixMicro()
	expires := min(now+sessionIdle.Microseconds(), e.CreatedAt.Add(sessionLifetime).UnixMicro())
	s.noteUse(ctx, use{of: "session", id: e.ID, last: &used, now: now}, func(tx db.Tx) error {
		_, err := tx.Exec(`UPDATE session SET last_used_at = ?, expires_at = ? WHERE id = ? AND uid = ? `+
			`AND last_used_at < ?1`, now, expires, e.row, e.ID)
		return err
	})
}

// Sessions returns the user's sessions that have not expired, the newest first. A view that is limited to projects may
// not call it.
func (h *Accounts) Sessions(ctx context.Context) ([]Session, error) {
	s, err := h.own("Sessions")
	if err != nil {
		return nil, err
	}
	all := []Session{}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		found, err := loadSessions(tx, `e.user_id = ? AND e.expires_at > ? ORDER BY e.created_at DESC, e.id DESC`, v.User,
			s.now())
		for _, e := range found {
			all = append(all, e.Session)
		}
		return err
	})
	return all, err
}

// ConfirmSession records that the person using a session of the view's user has just proved their identity again. A
// session that is unknown, or has ended, is ErrNotFound. A view that is limited to projects may not call it.
func (h *Accounts) ConfirmSession(ctx context.Context, id string) error {
	s, err := h.own("ConfirmSession")
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		now := s.now()
		result, err := tx.Exec(`UPDATE session SET confirmed_at = ? WHERE uid = ? AND user_id = ? AND expires_at > ?`, now,
			id, v.User, now)
		if err == nil && result.RowsAffected == 0 {
			return noSession(id)
		}
		return err
	})
}

func noSession(id string) error {
	return newError(KindNotFound, "id", "id %s is not a session of this user", show(id))
}

// DeleteSession ends one of the user's sessions at once, with the tokens made and the applications authorized in it:
// the wrong person may be using it. To sign out, use [Accounts.DeleteSessions]. A session that is unknown, or has
// ended, is ErrNotFound. A view that is limited to projects may not call it.
func (h *Accounts) DeleteSession(ctx context.Context, id string) error {
	s, err := h.own("DeleteSession")
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		if err := endMadeIn(tx, s.now(), `e.uid = ? AND e.user_id = ?`, id, v.User); err != nil {
			return err
		}
		result, err := tx.Exec(`DELETE FROM session WHERE uid = ? AND user_id = ?`, id, v.User)
		if err == nil && result.RowsAffected == 0 {
			return noSession(id)
		}
		return err
	})
}

// DeleteSessions ends sessions of the user at once: it signs the user out. It is not an error if there are none. A view
// that is limited to projects may not call it.
func (h *Accounts) DeleteSessions(ctx context.Context, d SessionSelection) error {
	s, err := h.own("DeleteSessions")
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		const these = `e.user_id = ?1 AND e.uid <> ?2 AND (?3 = '' OR e.uid = ?3)`
		if !d.KeepMade {
			if err := endMadeIn(tx, s.now(), these, v.User, d.Except, d.Only); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`DELETE FROM session WHERE id IN (SELECT e.id FROM session e WHERE `+these+`)`, v.User, d.Except,
			d.Only)
		return err
	})
}

// EndAccess ends access on behalf of the user at once: sessions, applications, MCP tokens, or all of them. Applications
// that the user authorizes again, and new tokens, work. A view that is limited to projects may not call it.
func (h *Accounts) EndAccess(ctx context.Context, e AccessEnd) error {
	s, err := h.own("EndAccess")
	if err != nil {
		return err
	}
	if len(e.Kinds) == 0 {
		return invalid("kinds", "kinds is empty; give some of %s", oneOf(AccessKinds()))
	}
	if err := checkKinds("kinds", e.Kinds); err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		return s.endKinds(tx, v.User, e)
	})
}

func checkKinds(argument string, kinds []AccessKind) error {
	for _, kind := range kinds {
		if !slices.Contains(AccessKinds(), kind) {
			return invalid(argument, "%s has %s; allowed are %s", argument, show(string(kind)), oneOf(AccessKinds()))
		}
	}
	return nil
}

func (s *Store) endKinds(tx db.Tx, user int64, e AccessEnd) error {
	for _, kind := range e.Kinds {
		var err error
		switch kind {
		case AccessSessions:
			err = endSessions(tx, user, e.KeepSession)
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

// endSessions ends the sessions of a user (a row), except the one with an id.
func endSessions(tx db.Tx, user int64, except string) error {
	_, err := tx.Exec(`DELETE FROM session WHERE user_id = ? AND uid <> ?`, user, except)
	return err
}

// endGrants ends a user's OAuth grants.
func endGrants(tx db.Tx, user, now int64) error {
	if _, err := tx.Exec(`UPDATE oauth_grant SET revoked_at = ? WHERE user_id = ? AND revoked_at IS NULL`, now,
		user); err != nil {
		return err
	}
	return endMadeClients(tx, now)
}

// endTokens ends a user's MCP tokens.
func endTokens(tx db.Tx, user, now int64) error {
	if _, err := tx.Exec(`UPDATE token SET revoked_at = ? WHERE user_id = ? AND revoked_at IS NULL`, now,
		user); err != nil {
		return err
	}
	return endMadeClients(tx, now)
}

// purgeSessions deletes the sessions that have expired, and counts them.
func purgeSessions(tx db.Tx, now int64) (int64, error) {
	result, err := tx.Exec(`DELETE FROM session WHERE expires_at <= ?`, now)
	return result.RowsAffected, err
}

// sessionRecord describes the row of a session. Exports leave sessions out: after a move to another file, people sign
// in again.
func sessionRecord() transfer.Record {
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

// Credentials are the name and password that a user signs in with.
type Credentials struct {
	Name     string // case, width and the encoding of a character make no difference
	Password string
}

// Format prints the credentials without the password.
func (c Credentials) Format(f fmt.State, _ rune) { redact.Format(f, c, "Password") }

// PasswordChange describes a change of the user's own password.
type PasswordChange struct {
	Old string // the current one; empty if there is none

	// New is at least 8 characters and at most 1,024 bytes long, without control characters, and not easy to guess: the
	// user's name, a common word, a row of the keyboard or a short repeated piece, with little added, is refused.
	// Different encodings of the same characters are the same password (RFC 8265, OpaqueString).
	New string

	KeepSession string // id of a session that stays, such as the caller's own; empty: all end

	// End is what else ends in the same commit: AccessGrants, AccessTokens. A person who knew the old password may have
	// made some. Nil: nothing.
	End []AccessKind
}

// Format prints the change without the passwords.
func (c PasswordChange) Format(f fmt.State, _ rune) { redact.Format(f, c, "Old", "New") }

// CheckPassword returns the user with this name and password. Anything else is ErrUnauthenticated, with the same
// message and after the same work, whether the user does not exist, the password is wrong or missing, or the user is
// disabled. The caller must limit the number of attempts. It works read-only, too.
func (h *Accounts) CheckPassword(ctx context.Context, c Credentials) (User, error) {
	s, err := h.operator("CheckPassword")
	if err != nil {
		return User{}, err
	}
	var u storedUser
	if len(c.Name) <= valid.MaxFoldedName {
		err := s.read(ctx, func(tx db.Tx, _ viewer) error {
			found, err := loadUsers(tx, `u.name_key = ?`, foldname.Key(c.Name))
			if len(found) > 0 {
				u = found[0]
			}
			return err
		})
		if err != nil {
			return User{}, err
		}
	}
	right, err := s.hashing.Compare(ctx, u.password, c.Password)
	if err != nil {
		return User{}, err
	}
	if !right || u.Disabled {
		return User{}, newError(KindUnauthenticated, "", "name or password is wrong")
	}
	s.renewHash(ctx, u, c.Password)
	return u.User, nil
}

// ChangePassword sets the password of this view's user, and ends the user's sessions except KeepSession. MCP tokens and
// OAuth grants stay valid, unless End names them. A wrong old password is ErrUnauthenticated, with the argument
// old_password; a user without an account is ErrConflict. A view that is limited to projects may not call it.
func (h *Accounts) ChangePassword(ctx context.Context, c PasswordChange) error {
	s, err := h.own("ChangePassword")
	if err != nil {
		return err
	}
	if err := s.checkWritable(); err != nil {
		return err
	}
	if err := checkKinds("end", c.End); err != nil {
		return err
	}
	var u storedUser
	err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		u, err = s.account(tx, v, "")
		return err
	})
	if err != nil {
		return err
	}
	if err := u.checkHasAccount(); err != nil {
		return err
	}
	if u.HasPassword {
		right, err := s.hashing.Compare(ctx, u.password, c.Old)
		if err != nil {
			return err
		}
		if !right {
			return newError(KindUnauthenticated, "old_password", "old_password is not the current password")
		}
	}
	hash, err := s.hashing.New(ctx, "new_password", c.New, u.Name)
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, _ viewer) error {
		if err := s.replaceHash(tx, u, hash); err != nil {
			return err
		}
		if err := endSessions(tx, u.row, c.KeepSession); err != nil {
			return err
		}
		return s.endKinds(tx, u.row, AccessEnd{Kinds: c.End, KeepSession: c.KeepSession})
	})
}

// replaceHash writes a new hash, unless the stored one has changed since u was read.
func (s *Store) replaceHash(tx db.Tx, u storedUser, hash string) error {
	result, err := tx.Exec(`UPDATE users SET password = ?, updated_at = ? WHERE id = ? AND coalesce(password, '') = ?`,
		hash, s.now(), u.row, u.password)
	if err == nil && result.RowsAffected == 0 {
		return newError(KindConflict, "old_password",
			"the password has been changed in the meantime; try again with that one")
	}
	return err
}

// renewHash replaces a hash that was made with less work than new ones. Its failure does not fail the sign-in.
func (s *Store) renewHash(ctx context.Context, u storedUser, password string) {
	if s.db.ReadOnly() {
		return
	}
	hash, err := s.hashing.Renew(ctx, u.password, password)
	if err == nil && hash == "" {
		return
	}
	if err == nil {
		err = s.writeStore(ctx, func(tx db.Tx) error {
			_, err := tx.Exec(`UPDATE users SET password = ? WHERE id = ? AND password = ?`, hash, u.row,
				u.password) // the account does not change
			return err
		})
	}
	if err != nil {
		s.log.DebugContext(ctx, "a password hash was not renewed", "user", u.ID, "error", err)
	}
}
