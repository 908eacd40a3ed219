package souvenir

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
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
		return findUser(tx, idOrName)
	case own.Name != "" && len(idOrName) <= valid.MaxFoldedName && foldname.Key(idOrName) == foldname.Key(own.Name):
		return own, nil
	}
	return own, newError(KindForbidden, "user", "user is %s; a view of a user is for that user alone", show(idOrName))
}

// checkHasAccount refuses a user without an account.
func (u storedUser) checkHasAccount() error {
	if u.Name != "" {
		return nil
	}
	return newError(KindConflict, "user", "user %s has no account; add one with this id first", show(u.ID))
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

// EndAccess ends kinds of access (at least one) on behalf of the user at once, except the sign-in with an id, such as
// the caller's own (empty: none stays). Applications that the user authorizes again, and new tokens, work. A view that
// is limited to projects may not call it.
func (h *Accounts) EndAccess(ctx context.Context, except string, kinds []AccessKind) error {
	s, err := h.own(ctx, "EndAccess")
	if err != nil {
		return err
	}
	if len(kinds) == 0 {
		return invalid("kinds", "kinds is empty; give some of %s", oneOf(AccessKinds()))
	}
	if err := checkKinds("kinds", kinds); err != nil {
		return err
	}
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		return s.endKinds(tx, v.User, except, kinds)
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

// endKinds ends kinds of access of a user (a row), except the sign-in with an id.
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

// use is the use of a credential.
type use struct {
	of, id string
	last   *int64 // last use recorded in the file; nil: never
	now    int64
}

// noteUse calls write to record the use of a credential: once a minute, without making the caller wait long or fail.
func (s *Store) noteUse(ctx context.Context, u use, write func(db.Tx) error) {
	const (
		every    = int64(time.Minute / time.Microsecond)
		patience = 250 * time.Millisecond
	)
	if u.last != nil && u.now-*u.last < every || s.db.ReadOnly() {
		return
	}
	// Only one caller tries, so that not every call waits while another process holds the file.
	key := u.of + " " + u.id
	tried, again := s.uses.LoadOrStore(key, u.now)
	if again && (u.now-tried.(int64) < every || !s.uses.CompareAndSwap(key, tried, u.now)) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.db.Write(ctx, write); err != nil {
		s.log.DebugContext(ctx, "the use of a "+u.of+" was not noted", "id", u.id, "error", err)
	}
}

// newSecret returns 256 random bits in the characters a-z and 2-7, newIdentifier 128 of them.
func newSecret() string { return randomText(32) }

func newIdentifier() string { return randomText(16) }

func randomText(size int) string {
	random := make([]byte, size)
	_, _ = rand.Read(random) // never fails: without randomness the program crashes
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random))
}

// digest returns the hash that secrets, codes and tokens are stored as. They are random and long, so a plain hash is
// enough.
func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
