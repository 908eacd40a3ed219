package systemtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/records/receipt"
)

// A receipt counts the exported or deleted data, matches the audit log, and is signed with the store's key.
func TestReceiptsSayWhatWasExportedAndDeleted(t *testing.T) {
	onEachEngine(t, func(t *testing.T, empty database) {
		d := empty.copied(t)
		s, err := d.open(Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		fillForReceipt(t, s)
		view := s.As(Access{User: "anna"})
		var out bytes.Buffer
		var exported, deleted Receipt
		if _, err := view.Upkeep().Export(t.Context(), &out, &ExportOptions{Receipt: &exported}); err != nil {
			t.Fatal(err)
		}
		o := openReceipt(t, s, exported)
		found, err := o.CompareExport(&out)
		for _, f := range found {
			if !f.Holds {
				t.Errorf("got %s, want that it holds", f.What)
			}
		}
		if err != nil || len(found) < 4 || o.Claims.User != "anna" || o.Claims.Counts["memory"] != 3 {
			t.Errorf("got %+v, %v, %v; want anna's 3 memories", o.Claims, found, err)
		}
		err = s.Accounts().DeleteUser(t.Context(), "anna", &DeletionOptions{WithMemories: true, Receipt: &deleted})
		if err != nil {
			t.Fatal(err)
		}
		o = openReceipt(t, s, deleted)
		for kind, want := range map[string]int64{"memory": 3, "revision": 1, "collection": 1, "project": 1, "trash": 1,
			"token": 1, "file": 0} {
			if got := o.Claims.Counts[kind]; got != want {
				t.Errorf("%s: got %d, want %d", kind, got, want)
			}
		}
		if o.Claims.Name != "安娜" || o.Claims.Store == "" || o.Claims.Kind != receipt.Deletion {
			t.Errorf("got %+v, want the name and the store", o.Claims)
		}
		before := deleted
		if err := s.Accounts().DeleteUser(t.Context(), "anna", &DeletionOptions{Receipt: &deleted}); err == nil ||
			deleted.Signature != before.Signature {
			t.Errorf("deleting again gives %v and another receipt, want an error and none", err)
		}
		if r, err := s.Upkeep().CheckAudit(t.Context(), nil); err != nil || !r.OK {
			t.Errorf("the audit log: got %+v, %v; want it sound", r, err)
		}
		noReceiptReadOnly(t, s, d)
	})
}

// fillForReceipt stores some data of each kind.
func fillForReceipt(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.Accounts().AddUser(t.Context(), NewUser{ID: "anna", Name: "安娜"}); err != nil {
		t.Fatal(err)
	}
	view := s.As(Access{User: "anna"})
	var last StoredMemory
	first, err := view.AddMemory(t.Context(), NewMemory{Content: "away"})
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"one", "two", "三"} {
		if last, err = view.AddMemory(t.Context(), NewMemory{Content: content, ProjectID: "p"}); err != nil {
			t.Fatal(err)
		}
	}
	content := "changed"
	_, changed := view.UpdateMemory(t.Context(), last.ID, MemoryUpdate{Content: &content})
	_, made := view.Accounts().AddToken(t.Context(), NewToken{Name: "x"})
	gone := view.DeleteMemory(t.Context(), first.ID, nil)
	if err := errors.Join(changed, made, gone); err != nil {
		t.Fatal(err)
	}
}

// openReceipt checks a receipt as far as a store can.
func openReceipt(t *testing.T, s *Store, r Receipt) receipt.Opened {
	t.Helper()
	encoded, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	o, err := receipt.Parse(encoded)
	if err != nil || !o.Valid || !o.Same {
		t.Fatalf("%s: got %+v, %v; want it signed", encoded, o, err)
	}
	keys, err := s.Accounts().SigningKeys(t.Context())
	if err != nil || len(keys) == 0 || !keys[0].Public.Equal(o.Key) || keys[0].ID != o.KeyID {
		t.Errorf("got %v, %v; want the key of the receipt %v first", keys, err, o.KeyID)
	}
	for e, err := range s.Upkeep().AuditEntries(t.Context(), AuditQuery{}) {
		if err != nil || e.Seq != o.Claims.Audit.Seq || e.Hash != o.Claims.Audit.Hash {
			t.Errorf("the newest entry is %+v, %v; want %+v", e, err, o.Claims.Audit)
		}
		break
	}
	return o
}

// noReceiptReadOnly checks that a read-only store gives no receipt.
func noReceiptReadOnly(t *testing.T, s *Store, d database) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := d.open(Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out bytes.Buffer
	_, err = s.Upkeep().Export(t.Context(), &out, &ExportOptions{Receipt: &Receipt{}})
	if !errors.Is(err, ErrReadOnly) || out.Len() > 0 {
		t.Errorf("read-only: got %v and %d bytes, want ErrReadOnly and none", err, out.Len())
	}
}
