// Package audit keeps the audit log: a chain of entries, each with a hash of itself and of the entry before it.
// Changing, adding or removing an entry without this code breaks the chain, unless all later entries are rewritten.
// Then the hash of the last one, which an operator has kept elsewhere, is no longer in the log.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/google/uuid"
	"github.com/souvenir-ai/souvenir/internal/db"
)

// Actions on the log itself.
const (
	Cut    = "audit.cut"    // the oldest entries were removed; the details have the number and hash of the last of these
	Accept = "audit.accept" // an operator accepted problems; the details name their places
)

// Entry is an entry of the log. It never contains text written by a person: see ID and Details.
type Entry struct {
	Seq                             int64 // its place, from 1
	At                              int64 // microseconds
	Namespace, Actor, Via           string
	Credential, CredentialID        string
	Action, Kind, Object, Canonical string // Canonical: the details as JSON, with sorted keys and without spaces
	Hash                            []byte
}

// Details of an entry: words of fixed lists, generated ids, numbers, truth values and hashes.
type Details = map[string]any

// version begins the hashed bytes, so that a later form of entries cannot be mistaken for this one.
const version = "souvenir-audit-1"

// sum returns the hash of an entry: SHA-256 over its fields and the hash before it in hexadecimal, each as
// LENGTH:BYTES, (a netstring). A length before each field leaves no two entries with the same bytes.
func (e Entry) sum(before []byte) []byte {
	var b []byte
	for _, field := range []string{version, strconv.FormatInt(e.Seq, 10), strconv.FormatInt(e.At, 10), e.Namespace,
		e.Actor, e.Via, e.Credential, e.CredentialID, e.Action, e.Kind, e.Object, e.Canonical,
		hex.EncodeToString(before)} {
		b = strconv.AppendInt(b, int64(len(field)), 10)
		b = append(append(append(b, ':'), field...), ',')
	}
	sum := sha256.Sum256(b)
	return sum[:]
}

// Zero stands for the hash before the first entry.
func Zero() []byte { return make([]byte, sha256.Size) }

// ID returns the form of an id in entries. A generated id stays as it is. An id that people choose, such as the name of
// a collection, may say something about them, and entries outlast their accounts, so it is hashed.
func ID(parts ...string) string {
	if _, err := uuid.Parse(parts[len(parts)-1]); err == nil || parts[len(parts)-1] == "" {
		return parts[len(parts)-1]
	}
	var b []byte
	for _, part := range parts {
		b = append(strconv.AppendInt(b, int64(len(part)), 10), ':')
		b = append(append(b, part...), ',')
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:16])
}

// Head returns the number and the hash of the newest entry: 0 and zeros for an empty log.
func Head(tx db.Tx) (seq int64, hash []byte, err error) {
	hash = Zero()
	err = tx.Each(func(row db.Rows) error { return row.Scan(&seq, &hash) },
		`SELECT id, hash FROM audit ORDER BY id DESC LIMIT 1`)
	return seq, hash, err
}

// Append adds an entry in a transaction. Two concurrent ones cannot follow the same entry: the number is the primary
// key, so one of the transactions is retried.
func Append(tx db.Tx, e Entry, details Details) error {
	if details == nil {
		details = Details{}
	}
	encoded, err := json.Marshal(details)
	if err != nil {
		return err
	}
	seq, before, err := Head(tx)
	if err != nil {
		return err
	}
	e.Seq, e.Canonical = seq+1, string(encoded)
	_, err = tx.Exec(`INSERT INTO audit (id, at, namespace, actor, via, credential, credential_id, action, kind, object,
		details, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, e.Seq, e.At, e.Namespace, e.Actor, e.Via,
		e.Credential, e.CredentialID, e.Action, e.Kind, e.Object, e.Canonical, e.sum(before))
	return err
}

// Each iterates over the entries for which a condition holds.
func Each(tx db.Tx, fn func(Entry) error, condition string, args ...any) error {
	return tx.Each(func(row db.Rows) error {
		var e Entry
		if err := row.Scan(&e.Seq, &e.At, &e.Namespace, &e.Actor, &e.Via, &e.Credential, &e.CredentialID, &e.Action, &e.Kind,
			&e.Object, &e.Canonical, &e.Hash); err != nil {
			return err
		}
		return fn(e)
	}, `SELECT a.id, a.at, a.namespace, a.actor, a.via, a.credential, a.credential_id, a.action, a.kind, a.object,
		a.details, a.hash FROM audit a WHERE `+condition, args...)
}

// Problem is a problem at a place of the chain.
type Problem struct {
	Seq     int64
	Problem string

	// Place identifies the problem exactly: the entry before, NUMBER:HASH; the entry that does not follow it,
	// NUMBER:HASH; and a hash of the latter's current content. Any later change there makes it another place. If empty,
	// the problem cannot be accepted.
	Place string
}

// Accepted are the details of an entry that accepts problems.
func Accepted(problems []Problem) Details {
	places := []string{}
	for _, p := range problems {
		if p.Place != "" {
			places = append(places, p.Place)
		}
	}
	return Details{"places": places}
}

// Report is the result of Verify.
type Report struct {
	First, Entries int64 // the number of the oldest entry, 0 for none; how many there are
	Head           int64
	HeadHash       []byte
	Problems       []Problem // problems that no operator has accepted
	Accepted       int       // problems that an operator has accepted
}

// Anchor is an entry that is known from elsewhere.
type Anchor struct {
	Seq  int64
	Hash []byte
}

// portion is the number of entries read at once.
const portion = 1000

// Verify checks the whole chain. It must contain the anchor, if not nil, unless that was cut off.
func Verify(tx db.Tx, anchor *Anchor) (r Report, err error) {
	v := verification{before: Zero(), next: 1, last: math.MinInt64, anchor: anchor,
		accepted: map[string]int64{}}
	if err := v.readMarks(tx); err != nil {
		return r, err
	}
	if v.cut != nil {
		v.before, v.next = v.cut.Hash, v.cut.Seq+1
	}
	for more := true; more; {
		more = false
		after := v.last
		err := Each(tx, func(e Entry) error {
			more = true
			v.look(e)
			return nil
		}, `a.id > ? ORDER BY a.id LIMIT ?`, after, portion)
		if err != nil {
			return r, err
		}
	}
	v.finish()
	v.report.Head, v.report.HeadHash = max(v.next-1, 0), v.before
	return v.report, nil
}

type verification struct {
	report   Report
	before   []byte // the hash of the entry before
	next     int64  // the number that the next entry should have
	last     int64  // the number of the last entry that was read
	anchor   *Anchor
	anchored bool
	cut      *Anchor          // the last entry that was cut off
	accepted map[string]int64 // places, and the number of the entry that accepts them
}

// mark is the details of entries on the log itself.
type mark struct {
	Through int64    `json:"through"`
	Hash    string   `json:"hash"`
	Places  []string `json:"places"`
}

// readMarks reads the entries about the log itself.
func (v *verification) readMarks(tx db.Tx) error {
	return Each(tx, func(e Entry) error {
		var m mark
		if err := json.Unmarshal([]byte(e.Canonical), &m); err != nil {
			return nil //nolint:nilerr // the entry is damaged, which its hash shows
		}
		if e.Action == Accept {
			if v.anchor != nil && e.Seq > v.anchor.Seq {
				return nil // anyone who can rewrite entries up to the anchor could also accept it
			}
			for _, place := range m.Places {
				v.accepted[place] = e.Seq
			}
			return nil
		}
		if hash, err := hex.DecodeString(m.Hash); err == nil && m.Through < e.Seq {
			v.cut = &Anchor{Seq: m.Through, Hash: hash}
		}
		return nil
	}, `a.action IN (?, ?) ORDER BY a.id`, Cut, Accept)
}

// find records that an entry does not follow the one before it, unless an operator has accepted exactly this.
func (v *verification) find(e Entry, seq int64, format string, args ...any) {
	place := fmt.Sprintf("%d:%x %d:%x %x", v.next-1, v.before, e.Seq, e.Hash, e.sum(Zero()))
	if v.accepted[place] > e.Seq { // the operator cannot have seen a later entry
		v.report.Accepted++
		return
	}
	v.report.Problems = append(v.report.Problems, Problem{seq, fmt.Sprintf(format, args...), place})
}

// look compares an entry with the one before it.
func (v *verification) look(e Entry) {
	if v.report.Entries == 0 {
		v.report.First = e.Seq
	}
	v.report.Entries++
	v.last = e.Seq
	switch {
	case e.Seq < v.next:
		v.find(e, e.Seq, "the entry should have been removed, or was inserted before the others")
		return
	case e.Seq > v.next:
		v.find(e, v.next, "entries %d to %d are missing", v.next, e.Seq-1)
		v.before = nil // not known; later entries build on this entry's own hash
	}
	if v.before != nil && !bytes.Equal(e.sum(v.before), e.Hash) {
		v.find(e, e.Seq, "the entry was changed, or does not follow the one before it")
	}
	if v.anchor != nil && v.anchor.Seq == e.Seq {
		v.anchored = true
		if !bytes.Equal(v.anchor.Hash, e.Hash) {
			v.refuse(e.Seq, "the hash of the entry differs from the anchor: the log was rewritten")
		}
	}
	v.before, v.next = e.Hash, e.Seq+1
}

// finish reports an anchor that is not among the remaining entries. Nothing in the log can accept these problems, since
// anyone who can rewrite the log could also accept them.
func (v *verification) finish() {
	a := v.anchor
	switch {
	case a == nil || v.anchored || a.Seq == 0:
	case a.Seq >= v.next:
		v.refuse(v.next, "entries %d to %d are missing at the end", v.next, a.Seq)
	case v.cut == nil || a.Seq > v.cut.Seq:
		v.refuse(a.Seq, "the entry of the anchor is missing")
	case a.Seq < v.cut.Seq:
		v.refuse(a.Seq, "the entry of the anchor was removed with all entries up to %d, so the anchor proves nothing "+
			"about the rest",
			v.cut.Seq)
	case !bytes.Equal(a.Hash, v.cut.Hash):
		v.refuse(a.Seq, "the entry had a different hash when it was removed: the log was rewritten")
	}
}

// refuse is find for problems that cannot be accepted.
func (v *verification) refuse(seq int64, format string, args ...any) {
	v.report.Problems = append(v.report.Problems, Problem{Seq: seq, Problem: fmt.Sprintf(format, args...)})
}

// errNoEntry means that an anchor is not in the chain.
var errNoEntry = errors.New("no entry has this number and hash")

// IsNoEntry reports whether an error of Remove means that the anchor is not in the chain.
func IsNoEntry(err error) bool { return errors.Is(err, errNoEntry) }

// Remove deletes all entries up to one, and records that in a new entry, e. The caller passes the hash of the last
// entry to delete, to confirm which ones they are.
func Remove(tx db.Tx, through Anchor, e Entry) (removed int64, err error) {
	found, err := db.Column[[]byte](tx, `SELECT hash FROM audit WHERE id = ?`, through.Seq)
	if err != nil {
		return 0, err
	}
	if len(found) == 0 || !bytes.Equal(found[0], through.Hash) {
		return 0, errNoEntry
	}
	report, err := Verify(tx, nil)
	if err != nil {
		return 0, err
	}
	problems := 0
	for _, p := range report.Problems {
		if p.Seq <= through.Seq {
			problems++
		}
	}
	e.Action, e.Kind, e.Object = Cut, "audit", ""
	err = Append(tx, e, Details{"through": through.Seq, "hash": hex.EncodeToString(through.Hash), "problems": problems})
	if err != nil {
		return 0, err
	}
	result, err := tx.Exec(`DELETE FROM audit WHERE id <= ?`, through.Seq)
	return result.RowsAffected, err
}
