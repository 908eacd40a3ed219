package systemtest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
)

// TestEntriesOfTheAuditLogCannotBeChangedUnseen makes two stores on one database write at once, and then changes the
// log with SQL in every way.
func TestEntriesOfTheAuditLogCannotBeChangedUnseen(t *testing.T) {
	onEachEngine(t, attackAudit)
}

// writeAudit writes entries through two stores at once, and returns a report of the log.
func writeAudit(t *testing.T, d database, each int) AuditReport {
	t.Helper()
	var stores []*Store
	for range 2 {
		store, err := d.open(Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		stores = append(stores, store)
	}
	if _, err := stores[0].Accounts().AddUser(t.Context(), NewUser{ID: LocalUser, Name: "Owner"}); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	errs := make(chan error, 4*each)
	for i := range 4 {
		running.Go(func() {
			for n := range each {
				_, err := stores[i%2].Accounts().AddToken(t.Context(), NewToken{Name: fmt.Sprintf("laptop %d %d", i, n)})
				errs <- err
			}
		})
	}
	running.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Errorf("AddToken beside others gives %v", err)
		}
	}
	report, err := stores[1].Upkeep().CheckAudit(t.Context(), nil)
	if want := int64(4*each + 1); err != nil || !report.OK || report.Entries != want || report.Head.Seq != want {
		t.Fatalf("got %+v, %v, want %d entries in one chain", report, err, want)
	}
	return report
}

const auditColumns = `at, namespace, actor, via, credential, credential_id, action, kind, object, details, hash`

func executing(statements ...string) func(db.Tx) error {
	return func(tx db.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(statement); err != nil {
				return err
			}
		}
		return nil
	}
}

func both(first, second func(db.Tx) error) func(db.Tx) error {
	return func(tx db.Tx) error { return errors.Join(first(tx), second(tx)) }
}

// rewriting writes the whole log again: an attacker who has the code can write a consistent chain.
func rewriting(entries int64, e audit.Entry) func(db.Tx) error {
	return func(tx db.Tx) error {
		if _, err := tx.Exec(`DELETE FROM audit`); err != nil {
			return err
		}
		for range entries {
			if err := audit.Append(tx, e, nil); err != nil {
				return err
			}
		}
		return nil
	}
}

func attackAudit(t *testing.T, d database) {
	report := writeAudit(t, d, 6)
	hash, err := hex.DecodeString(report.Head.Hash)
	if err != nil {
		t.Fatal(err)
	}
	kept := &audit.Anchor{Seq: report.Head.Seq, Hash: hash}
	rest := fmt.Sprint(report.Head.Seq)
	again := audit.Entry{At: time.Now().UnixMicro(), Action: "user.add", Kind: "user"}
	forge := func(details audit.Details, action string) func(db.Tx) error {
		return func(tx db.Tx) error {
			e := again
			e.Action = action
			return audit.Append(tx, e, details)
		}
	}
	rewrite := rewriting(kept.Seq, again)
	accept := func(tx db.Tx) error {
		r, err := audit.Verify(tx, kept)
		if err != nil {
			return err
		}
		return forge(audit.Accepted(r.Problems), audit.Accept)(tx)
	}
	cutAll := func(tx db.Tx) error {
		_, hash, err := audit.Head(tx)
		if err != nil {
			return err
		}
		_, err = audit.Remove(tx, audit.Anchor{Seq: kept.Seq, Hash: hash}, again)
		return err
	}
	var shifted []int64
	for seq := int64(7); seq <= kept.Seq+1; seq++ {
		shifted = append(shifted, seq)
	}
	attacks := []struct {
		name   string
		attack func(db.Tx) error
		seqs   []int64 // the reported entries
		anchor bool    // found only with an anchor
	}{
		{"nothing", executing(), nil, false},
		{"a changed time", executing(`UPDATE audit SET at = at + 1 WHERE id = 7`), []int64{7}, false},
		{"a changed actor", executing(`UPDATE audit SET actor = 'guest' WHERE id = 7`), []int64{7}, false},
		{"text moved to the next field", executing(`UPDATE audit SET action = 'token.ad', kind = 'dtoken' WHERE id = 7`),
			[]int64{7}, false},
		{"changed details", executing(`UPDATE audit SET details = '{}' WHERE id = 7`), []int64{7}, false},
		{"details that are no JSON", executing(`UPDATE audit SET details = 'x' WHERE id = 7`), []int64{7}, false},
		{"a changed hash", executing(`UPDATE audit SET hash = (SELECT hash FROM audit WHERE id = 3) WHERE id = 7`),
			[]int64{7, 8}, false},
		{"a deleted entry", executing(`DELETE FROM audit WHERE id = 7`), []int64{7}, false},
		{"deleted entries", executing(`DELETE FROM audit WHERE id IN (7, 8, 12)`), []int64{7, 12}, false},
		{"the first deleted", executing(`DELETE FROM audit WHERE id <= 3`), []int64{1}, false},
		{"two exchanged", executing(`UPDATE audit SET id = 0 WHERE id = 7`, `UPDATE audit SET id = 7 WHERE id = 8`,
			`UPDATE audit SET id = 8 WHERE id = 0`), []int64{7, 8, 9}, false},
		{"one put in front", executing(`INSERT INTO audit SELECT 0, ` + auditColumns + ` FROM audit WHERE id = 5`),
			[]int64{0}, false},
		{"one put in between", executing(`UPDATE audit SET id = -id WHERE id > 6`,
			`INSERT INTO audit SELECT 7, `+auditColumns+` FROM audit WHERE id = 3`,
			`UPDATE audit SET id = 1 - id WHERE id < 0`), shifted, false},
		{"the end cut off", executing(`DELETE FROM audit WHERE id > 20`), []int64{21}, true},
		{"everything deleted", executing(`DELETE FROM audit`), []int64{1}, true},
		{"everything rewritten", rewrite, []int64{kept.Seq}, true},
		{"rewritten and accepted", both(rewrite, accept), []int64{kept.Seq}, true},
		{"a cut beyond the anchor made up", both(executing(`DELETE FROM audit WHERE id < `+rest),
			forge(audit.Details{"through": kept.Seq - 1, "hash": strings.Repeat("00", 32)}, audit.Cut)),
			[]int64{kept.Seq}, false},
		{"a cut of all made up", both(rewrite, cutAll), []int64{kept.Seq}, true},
		{"the place beside one that was accepted", both(both(executing(`DELETE FROM audit WHERE id = 7`), accept),
			executing(`DELETE FROM audit WHERE id = 8`)), []int64{7}, false},
	}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) { verifyAttacked(t, d, a.attack, kept, a.seqs, a.anchor) })
	}
}

// verifyAttacked attacks the log in a transaction that is then undone.
func verifyAttacked(t *testing.T, d database, attack func(db.Tx) error, kept *audit.Anchor, want []int64, anchor bool) {
	engine, err := d.engine(false)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	undo := errors.New("undone")
	var alone, kepts audit.Report
	err = engine.Write(t.Context(), func(tx db.Tx) error {
		if err := attack(tx); err != nil {
			return err
		}
		var failed [2]error
		alone, failed[0] = audit.Verify(tx, nil)
		kepts, failed[1] = audit.Verify(tx, kept)
		return errors.Join(failed[0], failed[1], undo)
	})
	if !errors.Is(err, undo) {
		t.Fatalf("the attack gives %v, want none", err)
	}
	if got := seqsOf(kepts); !slices.Equal(got, want) {
		t.Errorf("with the anchor got %v, want %v", kepts.Problems, want)
	}
	if !anchor && !slices.Equal(seqsOf(alone), want) || anchor && len(alone.Problems) > 0 {
		t.Errorf("without the anchor got %v, want %v, or none if only an anchor shows it (%v)", alone.Problems, want, anchor)
	}
	if bytes.Equal(kepts.HeadHash, kept.Hash) && want != nil && anchor {
		t.Error("the end is the same, want another one")
	}
}

// seqsOf returns the numbers of the reported entries, in order.
func seqsOf(r audit.Report) (seqs []int64) {
	for _, p := range r.Problems {
		seqs = append(seqs, p.Seq)
	}
	return slices.Compact(seqs)
}
