package souvenir

import (
	"context"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

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

// RevokeAccess immediately revokes the given kinds (at least one) of the user's access. The sign-in whose id is except
// stays, such as the caller's own; empty means no exception. The user can authorize applications again, and new tokens
// work. A view that is limited to projects may not call it.
func (h *Accounts) RevokeAccess(ctx context.Context, except string, kinds []AccessKind) (err error) {
	defer inGo[struct{}](&err, "kinds", "kinds")
	s, err := h.own(ctx, "RevokeAccess")
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
			return invalid(argument, "{} has %s; expected %s", show(string(kind)), oneOf(AccessKinds()))
		}
	}
	return nil
}

// endKinds revokes kinds of a user's access, except the sign-in with an id. user is a row.
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
	if err := endSignIns(tx, row, ""); err != nil {
		return err
	}
	if err := endTokens(tx, row, now); err != nil {
		return err
	}
	return endGrants(tx, row, now)
}

// Pausing stops a client for a while without ending its access. Its credentials stay valid, so that it can continue
// when resumed: meanwhile it can renew its refresh token, but every access is refused.

// TokenUpdate describes a change to an MCP token. Nil fields change nothing.
type TokenUpdate struct {
	Paused *bool // true: the token, and everything made through it, is refused until set to false
}

// GrantUpdate describes a change to an OAuth grant. Nil fields change nothing.
type GrantUpdate struct {
	Paused *bool // true: the application, and all tokens that it made, are refused with this grant until set to false
}

// UpdateToken changes one of the user's tokens, and returns it. Resuming a token also resumes everything paused with
// it. A token that is unknown, or has ended, is ErrNotFound. A view that is limited to projects may not call it.
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

// pauseToken pauses a token and everything made through it, or resumes it and everything paused with it.
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

// pausing returns the audit log's action for pausing or resuming a kind of access.
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
		"the user has paused this access; they can resume it in the dashboard, under Tokens or Applications")
}
