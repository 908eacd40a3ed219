package souvenir

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/transfer"
)

// What a user exports is what the user owns, all of it, and is the same in another store.
func TestExportOfOnesOwn(t *testing.T) {
	s := openRich(t)
	alice := s.As(Access{User: "alice"})
	if _, err := alice.SetPreferences(t.Context(), map[string]any{"theme": "dark"}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	summary, err := alice.Upkeep().Export(t.Context(), &out, nil)
	if err != nil {
		t.Fatal(err)
	}
	owners := map[string]int{}
	for line := range strings.Lines(out.String()) {
		var written struct{ Type, ID, Owner, User string }
		if err := json.Unmarshal([]byte(line), &written); err != nil {
			t.Fatal(err)
		}
		switch written.Type {
		case transfer.KindMember, transfer.KindIdentity, transfer.KindClient, transfer.KindGrant, transfer.KindToken,
			transfer.KindRefreshToken, transfer.KindSigningKey:
			t.Errorf("it has %s", line)
		case transfer.KindMemory, transfer.KindCollection, transfer.KindProject, transfer.KindFile:
			owners[written.Owner]++
		}
	}
	if len(owners) != 1 || owners["alice"] == 0 || strings.Contains(out.String(), `"bob"`) {
		t.Errorf("owners are %v, want alice only and no \"bob\" in the export:\n%.10000s", owners, out.String())
	}
	var all bytes.Buffer
	whole, err := s.Upkeep().Export(t.Context(), &all, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for line := range strings.Lines(all.String()) {
		var written struct{ Type, ID, Owner, User string }
		if err := json.Unmarshal([]byte(line), &written); err != nil {
			t.Fatal(err)
		}
		if written.Owner == "alice" || written.Type == transfer.KindPreference && written.User == "alice" ||
			written.Type == transfer.KindUser && written.ID == "alice" {
			want[written.Type]++
		}
	}
	for _, kind := range []string{transfer.KindUser, transfer.KindPreference, transfer.KindMemory, transfer.KindCollection,
		transfer.KindProject, transfer.KindFile} {
		if summary.Counts[kind] != want[kind] || want[kind] == 0 {
			t.Errorf("%d of %s are exported, want %d", summary.Counts[kind], kind, want[kind])
		}
	}
	if whole.Counts[transfer.KindRevision] == 0 || summary.Counts[transfer.KindRevision] == 0 ||
		summary.Counts[transfer.KindVectors] == 0 {
		t.Errorf("got counts %v of %v, want revisions in both and vectors in the first", summary.Counts, whole.Counts)
	}

	other := openWords(t, filepath.Join(t.TempDir(), "other.db"), Options{Now: sealedClock})
	report, err := other.Upkeep().Import(t.Context(), bytes.NewReader(out.Bytes()), nil)
	if err != nil || len(report.Conflicts) > 0 || report.Ignored > 0 {
		t.Fatalf("got %+v %v, want no error, no conflicts and ignored at most 0", report, err)
	}
	contents := func(s *Store) []string {
		var all []string
		for m, err := range s.As(Access{User: "alice"}).Memories(context.Background(), List{}) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Owner == "alice" {
				all = append(all, m.Content)
			}
		}
		slices.Sort(all)
		return all
	}
	if here, there := contents(s), contents(other); !slices.Equal(here, there) ||
		len(here) != summary.Counts[transfer.KindMemory] {
		t.Errorf("imported are %q, want %q, which are %d", there, here, summary.Counts[transfer.KindMemory])
	}
	if found, err := other.As(Access{User: "alice"}).Preferences(t.Context()); err != nil ||
		!maps.Equal(found, map[string]any{"theme": "dark"}) {
		t.Errorf("got %v %v, want no error and found %v", found, err, map[string]any{"theme": "dark"})
	}
	if report, err := other.Upkeep().Check(t.Context(), nil); err != nil || !report.OK {
		t.Errorf("got %+v %v, want no error and OK", report, err)
	}
}

// A user with nothing exports nothing.
func TestExportOfNothing(t *testing.T) {
	s := openRich(t)
	var out bytes.Buffer
	if summary, err := s.As(Access{User: "new user"}).Upkeep().Export(t.Context(), &out, nil); err != nil ||
		len(summary.Counts) > 0 || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("got %+v %v: %s, want no error, no counts and 2 lines", summary, err, out.String())
	}
}
