package souvenir

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/portions"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/records/receipt"
	"github.com/souvenir-ai/souvenir/internal/trash"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// The audit log records operations on users, credentials, shares and the store as a whole, in a chain of hashes. A
// receipt is a signed statement about an export or a deletion, and names its entry.

// AuditEntry is an entry of the audit log. It holds ids, words from fixed lists, numbers and hashes, but never a name
// or other text that a person wrote: entries outlive the people they are about.
type AuditEntry struct {
	Seq       int64     `json:"seq"` // its place in the log, from 1, without gaps
	At        time.Time `json:"at"`
	Namespace string    `json:"namespace,omitempty"`
	Actor     Actor     `json:"actor"`
	Action    string    `json:"action"` // such as "user.add" or "export"; docs/audit.md has all of them
	Kind      string    `json:"kind"`   // of the object, such as "user" or "token"

	// Object is the id of the thing acted on. Ids that people choose (of projects, clients, collections) are given as
	// "sha256:" and a hash; see [AuditID].
	Object  string         `json:"object,omitempty"`
	Details map[string]any `json:"details"`
	Hash    string         `json:"hash"` // hex SHA-256 of the entry and of the hash before it
}

// Actor identifies who did something, for the audit log. It grants no rights.
type Actor struct {
	User         string         `json:"user,omitempty"` // id; empty: the person who runs the program
	Via          ActorVia       `json:"via,omitempty"`
	Credential   CredentialKind `json:"credential,omitempty"`
	CredentialID string         `json:"credential_id,omitempty"`
}

// ActorVia is how an [Actor] reached the store.
type ActorVia string

// The values of [ActorVia]. Empty means a program that has the store open.
const (
	ViaServer  ActorVia = "server"  // a request to the server
	ViaCommand ActorVia = "command" // the command line
	ViaUpkeep  ActorVia = "upkeep"  // background work of the store itself
)

type actorKey struct{}

// WithActor returns a context whose calls the audit log attributes to an actor: the one that of returns when an entry
// is written. A view's user is known anyway and cannot be replaced: on a view, only the rest of the actor counts.
func WithActor(ctx context.Context, of func() Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, of)
}

// ActorOf returns the actor for a [Principal], whose request reached the server.
func ActorOf(p Principal) Actor {
	a := Actor{User: p.User.ID, Via: ViaServer}
	switch {
	case p.TokenID != "":
		a.Credential, a.CredentialID = CredentialToken, p.TokenID
	case p.ClientID != "":
		a.Credential, a.CredentialID = CredentialClient, p.ClientID
	case p.SignInID != "":
		a.Credential, a.CredentialID = CredentialSignIn, p.SignInID
	}
	return a
}

// AuditID returns the form that an id has in the audit log. An id that the store generated stays as it is; any other
// becomes a hash of the kind, the ids that come before it (the owner of a project or a collection), and the id itself.
func AuditID(kind string, ids ...string) string { return audit.ID(append([]string{kind}, ids...)...) }

// AuditAnchor names an entry of the log with its hash. Kept elsewhere, on paper or in another log, it shows later that
// the log up to this entry is unchanged.
type AuditAnchor struct {
	Seq  int64  `json:"seq"` // 0: before the first entry
	Hash string `json:"hash"`
}

// AuditReport is the result of [Upkeep.CheckAudit].
type AuditReport struct {
	OK       bool           `json:"ok"`
	Entries  int64          `json:"entries"`
	First    int64          `json:"first"`    // the number of the oldest entry; 0: none
	Head     AuditAnchor    `json:"head"`     // the newest entry
	Problems []AuditProblem `json:"problems"` // never nil
	Accepted int            `json:"accepted"` // problems that an operator has accepted; see [CheckOptions]
}

// AuditProblem is a place where the log was altered.
type AuditProblem struct {
	Seq     int64  `json:"seq"`
	Problem string `json:"problem"`
}

// AuditQuery asks for entries of the audit log. An entry must match every field that is set.
type AuditQuery struct {
	Before int64  // only entries with a lower number; 0: from the newest on
	Action string // an action, or its beginning up to a dot, such as "user"
	Actor  string // the id of the user who did it
	Object string // as in [AuditEntry]
}

// auditPortion is how many entries are read at once.
const auditPortion = 200

// event describes an entry to add. A context without an actor stands for a program.
type event struct {
	action, kind, object string
	details              audit.Details
}

// note adds an entry to the audit log, in the same transaction, unless that failed with err.
func (s *Store) note(ctx context.Context, tx db.Tx, err error, e event) error {
	if err != nil {
		return err
	}
	return audit.Append(tx, s.auditEntry(ctx, e), e.details)
}

// noteAlone adds an entry about a finished operation in a transaction of its own. A read-only store keeps no log. The
// operation does not fail because its entry cannot be written, as on a full disk or during another process's long
// write: the program's log then reports the missing entry.
func (s *Store) noteAlone(ctx context.Context, err error, e event) error {
	if err != nil || s.db.DB.ReadOnly() || s.db.InSnapshot(ctx) || s.db.InTransaction(ctx) {
		return err
	}
	limited, cancel := context.WithTimeout(db.Freeing(context.WithoutCancel(ctx)), 5*time.Second)
	defer cancel()
	err = wrap(s.db.Record(limited, func(tx db.Tx) error { return s.note(ctx, tx, nil, e) }))
	if err != nil {
		s.log.Error("could not write an entry of the audit log", "action", e.action, "error", err)
	}
	return nil
}

// auditEntry returns the entry for an event: who, when and where.
func (s *Store) auditEntry(ctx context.Context, e event) audit.Entry {
	var a Actor
	if of, is := ctx.Value(actorKey{}).(func() Actor); is && of != nil {
		a = of()
	}
	if !s.operator {
		a.User = cmp.Or(s.access.User, a.User)
	}
	return audit.Entry{At: s.now(), Namespace: s.access.Namespace, Actor: a.User, Via: string(a.Via),
		Credential: string(a.Credential), CredentialID: auditCredential(a), Action: e.action, Kind: e.kind, Object: e.object}
}

// auditCredential returns the id of the credential, hashed for a client, since a person may have chosen it.
func auditCredential(a Actor) string {
	if a.Credential == CredentialClient {
		return AuditID("client", a.CredentialID)
	}
	return a.CredentialID
}

// AuditEntries iterates over the entries of the audit log that match when it begins to read them, the newest first. It
// is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) AuditEntries(ctx context.Context, q AuditQuery) iter.Seq2[AuditEntry, error] {
	first := cmp.Or(q.Before, int64(1)<<62)
	return portions.Each(first, func(before int64) (page []AuditEntry, next int64, more bool, err error) {
		if page, err = h.auditPage(ctx, q, before); len(page) > 0 {
			next, more = page[len(page)-1].Seq, len(page) == auditPortion
		}
		return page, next, more, err
	})
}

// auditPage reads the next portion.
func (h *Upkeep) auditPage(ctx context.Context, q AuditQuery, before int64) (page []AuditEntry, err error) {
	defer setGoNames[AuditQuery](&err)
	s, err := h.operator(ctx, "AuditEntries")
	if err != nil {
		return nil, err
	}
	if q.Before < 0 {
		return nil, invalid("before", "{} is %d; expected the number of an entry, or 0 for the newest", q.Before)
	}
	for argument, value := range map[string]string{"action": q.Action, "actor": q.Actor, "object": q.Object} {
		if err := valid.UTF8(argument, value); err != nil {
			return nil, err
		}
	}
	condition, args := `a.id < ?`, []any{before}
	if q.Action != "" {
		condition += ` AND (a.action = ? OR a.action > ? AND a.action < ?)` // / is the byte after the point
		args = append(args, q.Action, q.Action+".", q.Action+"/")
	}
	if q.Actor != "" {
		condition, args = condition+` AND a.actor = ?`, append(args, q.Actor)
	}
	if q.Object != "" {
		condition, args = condition+` AND a.object = ?`, append(args, q.Object)
	}
	err = s.readStore(ctx, func(tx db.Tx) error {
		page = nil
		return audit.Each(tx, func(e audit.Entry) error {
			page = append(page, publicEntry(e))
			return nil
		}, condition+` ORDER BY a.id DESC LIMIT ?`, append(args, auditPortion)...)
	})
	return page, err
}

// publicEntry returns an entry in the form of the API. Details that cannot be read are empty: the check of the chain
// names them.
func publicEntry(e audit.Entry) AuditEntry {
	details := map[string]any{}
	if json.Unmarshal([]byte(e.Canonical), &details) != nil || details == nil {
		details = map[string]any{}
	}
	return AuditEntry{Seq: e.Seq, At: kernel.ToTime(e.At), Namespace: e.Namespace,
		Actor: Actor{User: e.Actor, Via: ActorVia(e.Via), Credential: CredentialKind(e.Credential),
			CredentialID: e.CredentialID},
		Action: e.Action, Kind: e.Kind, Object: e.Object, Details: details, Hash: hex.EncodeToString(e.Hash)}
}

// CheckAudit follows the chain of the audit log, and names the entries that were altered or are missing. The
// end of the log can be cut off, and all of it rewritten, without a trace in the log itself: an anchor that was kept
// elsewhere shows that, too. Nil means none. [Upkeep.Check] verifies the log without an anchor.
//
// It is for the Store that Open returned; a view gets ErrForbidden.
func (h *Upkeep) CheckAudit(ctx context.Context, anchor *AuditAnchor) (_ AuditReport, err error) {
	defer setGoNames[AuditAnchor](&err)
	s, err := h.operator(ctx, "CheckAudit")
	if err != nil {
		return AuditReport{}, err
	}
	var at *audit.Anchor
	if anchor != nil {
		if at, err = anchor.decoded(); err != nil {
			return AuditReport{}, err
		}
	}
	var r audit.Report
	err = s.readStore(ctx, func(tx db.Tx) (err error) {
		r, err = audit.Verify(tx, at)
		return err
	})
	report := AuditReport{Entries: r.Entries, First: r.First, Head: AuditAnchor{r.Head, hex.EncodeToString(r.HeadHash)},
		Problems: []AuditProblem{}, Accepted: r.Accepted}
	for _, p := range r.Problems {
		report.Problems = append(report.Problems, AuditProblem{p.Seq, p.Problem})
	}
	report.OK = err == nil && len(report.Problems) == 0
	return report, err
}

// decoded checks an anchor.
func (a AuditAnchor) decoded() (*audit.Anchor, error) {
	hash, err := hex.DecodeString(a.Hash)
	switch {
	case a.Seq < 0:
		return nil, invalid("seq", "{} is %d; expected the number of an entry", a.Seq)
	case err != nil || len(hash) != len(audit.Zero()):
		return nil, invalid("hash", "{} is %s; expected the 64 hexadecimal digits of a SHA-256", show(a.Hash))
	case a.Seq == 0 && !bytes.Equal(hash, audit.Zero()):
		return nil, invalid("hash", "{} is given without the number of its entry; give both")
	}
	return &audit.Anchor{Seq: a.Seq, Hash: hash}, nil
}

// CutAudit removes the oldest entries of the audit log, up to the one that through names with its hash, and returns
// their number. It adds an entry that records who did it, up to where, and the hash, so that the rest can still be
// verified. If that entry does not have this hash, the error is ErrNotFound.
//
// It is for the Store that Open returned; a view gets ErrForbidden. On a read-only store it is ErrReadOnly.
func (h *Upkeep) CutAudit(ctx context.Context, through AuditAnchor) (removed int64, err error) {
	defer setGoNames[AuditAnchor](&err)
	s, err := h.operator(ctx, "CutAudit")
	if err != nil {
		return 0, err
	}
	if err := s.checkWritable(); err != nil {
		return 0, err
	}
	at, err := through.decoded()
	if err != nil {
		return 0, err
	}
	err = s.writeStore(ctx, func(tx db.Tx) (err error) {
		removed, err = audit.Remove(tx, *at, s.auditEntry(ctx, event{}))
		if audit.IsNoEntry(err) {
			err = newError(KindNotFound, "seq", "{}: the log has no entry %s with this hash; list the log again",
				strconv.FormatInt(through.Seq, 10))
		}
		return err
	})
	return removed, err
}

// Receipt proves an export or a deletion to others. It states the objects, their number, the time and the actor, with
// hashes, and is signed with the key that signs access tokens. "souvenir receipt verify" checks its JSON;
// docs/receipts.md describes it.
type Receipt = receipt.Receipt

// settingStoreID is a random number by which receipts name the store.
const settingStoreID = "store_id"

// sign notes an event, and returns a receipt about it.
func (s *Store) sign(ctx context.Context, tx db.Tx, c receipt.Claims, e event) (Receipt, error) {
	id, err := kernel.Setting(tx, settingStoreID)
	if err == nil && id == 0 {
		id = rand.Int64N(1<<62) + 1
		err = kernel.SetSetting(tx, settingStoreID, id)
	}
	if err := s.note(ctx, tx, err, e); err != nil {
		return Receipt{}, err
	}
	seq, hash, err := audit.Head(tx)
	if err != nil {
		return Receipt{}, err
	}
	key, err := s.oauth.keys.Current(tx, s.now())
	if err != nil {
		return Receipt{}, err
	}
	by := s.auditEntry(ctx, e)
	if c.User != "" {
		names, err := db.Column[string](tx, `SELECT name FROM users WHERE namespace = ? AND uid = ? AND name IS NOT NULL`,
			s.access.Namespace, c.User)
		if err != nil {
			return Receipt{}, err
		}
		if len(names) > 0 {
			c.Name = names[0]
		}
	}
	c.Store, c.Namespace, c.At = fmt.Sprintf("%016x", id), s.access.Namespace, kernel.ToTime(by.At)
	c.Actor = receipt.Actor{User: by.Actor, Via: by.Via, Credential: by.Credential}
	c.Audit = receipt.Audit{Seq: seq, Hash: hex.EncodeToString(hash)}
	return receipt.Sign(c, key.ID, key.Public(), key.Signature)
}

// holdings are the claims of a receipt about the deletion of a user.
func (s *Store) holdings(ctx context.Context, user string) (c receipt.Claims, err error) {
	err = s.readStore(ctx, func(tx db.Tx) error {
		h, err := trash.HoldingsOf(tx, s.access.Namespace, user)
		c = receipt.Claims{Kind: receipt.Deletion, User: user, Name: h.Name, Bytes: h.Bytes, Counts: h.Counts}
		return err
	})
	return c, err
}
