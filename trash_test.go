package souvenir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// traces counts how often each secret occurs in the files of a store.
func traces(t *testing.T, path string, secrets ...string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, secret := range secrets {
			if n := bytes.Count(data, []byte(secret)); n > 0 {
				found[secret+suffix] = n
			}
		}
	}
	return found
}

// erasures erase a memory and a file that are in the trash.
var erasures = map[string]func(ctx context.Context, s *Store, memory, file string) error{
	"an entry": func(ctx context.Context, s *Store, memory, file string) error {
		for _, id := range []string{memory, file} {
			if err := s.Trash().Erase(ctx, id); err != nil {
				return err
			}
		}
		return nil
	},
	"the whole trash": func(ctx context.Context, s *Store, _, _ string) error {
		_, err := s.Trash().Empty(ctx)
		return err
	},
	"when its time is over": func(ctx context.Context, s *Store, _, _ string) error {
		_, err := s.Upkeep().Purge(ctx, &PurgeOptions{TrustClock: true})
		return err
	},
	"without the trash": func(ctx context.Context, s *Store, memory, file string) error {
		for _, id := range []string{memory, file} {
			if _, err := s.Trash().Restore(ctx, id); err != nil {
				return err
			}
		}
		if err := s.DeleteMemory(ctx, memory, &DeletionOptions{Erase: true}); err != nil {
			return err
		}
		return s.DeleteFile(ctx, file, &DeletionOptions{Erase: true})
	},
	"with its project": func(ctx context.Context, s *Store, memory, file string) error {
		if _, err := s.Trash().Restore(ctx, memory); err != nil {
			return err
		}
		if err := s.Trash().Erase(ctx, file); err != nil {
			return err
		}
		return s.DeleteProject(ctx, ProjectRef{ID: "p"}, &DeletionOptions{WithMemories: true, Erase: true})
	},
}

// Erased data is in no byte of the file or its log: not in tables, full text, free pages or earlier versions of pages.
func TestErasedBytesAreGone(t *testing.T) {
	longtest.Only(t)
	const word, secret, former, tag, inFile = "xylotomous", "the xylotomous password is Quidnunc",
		"it was Zugzwang before", "tagfloccinauci", "bytesofafile-Wobbegong"
	all := []string{word, "Quidnunc", "quidnunc", "Zugzwang", "zugzwang", tag, "Wobbegong", "secretname"}
	for _, name := range longtest.Keys(erasures, 1, 2) {
		erase := erasures[name]
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "erased.db")
			var late time.Duration
			s := openWords(t, path, Options{Now: func() time.Time { return time.Now().Add(late) }})
			if _, err := s.AddMemories(t.Context(),
				slices.Repeat([]NewMemory{{Content: "the others stay", Tags: []string{"other"}}}, 200), nil); err != nil {
				t.Fatal(err)
			}
			m := mustAdd(t, s, NewMemory{ProjectID: "p", Content: former, Tags: []string{tag},
				ShownMetadata: map[string]any{"key": secret}})
			mustPersist(t, s)
			if _, err := s.UpdateMemory(t.Context(), m.ID,
				MemoryUpdate{Content: content(secret + strings.Repeat(". "+secret, 2000))}); err != nil {
				t.Fatal(err)
			}
			f := mustAddFile(t, s, NewFile{Filename: "secretname.txt", MemoryID: m.ID}, strings.Repeat(inFile, 100_000))
			if err := s.index.EraseStale(t.Context()); err != nil { // so that it indexes the memory again
				t.Fatal(err)
			}
			if before := traces(t, path, all...); len(before) < 8 {
				t.Fatalf("before, the files hold %v only; want at least a length of 8", before)
			}
			if err := s.DeleteMemory(t.Context(), m.ID, nil); err != nil {
				t.Fatal(err)
			}
			if err := s.DeleteFile(t.Context(), f.ID, nil); err != nil {
				t.Fatal(err)
			}
			if name == "when its time is over" {
				late = 31 * 24 * time.Hour
			}
			if err := erase(t.Context(), s, m.ID, f.ID); err != nil {
				t.Fatal(err)
			}
			if left := traces(t, path, all...); len(left) > 0 {
				t.Errorf("the files still hold %v, want none", left)
			}
			checkConsistency(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if left := traces(t, path, all...); len(left) > 0 {
				t.Errorf("after closing, the file still holds %v; want none", left)
			}
		})
	}
}

// Deleting a user empties their trash, including memories of their projects that others deleted.
func TestDeletedUsersLeaveNoTrash(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "users.db"), Options{})
	for _, n := range []string{"ada", "bob"} {
		if _, err := s.Accounts().AddUser(t.Context(), NewUser{ID: n, Name: n}); err != nil {
			t.Fatal(err)
		}
	}
	ada, bob := s.As(Access{User: "ada"}), s.As(Access{User: "bob"})
	var ids []string
	for i := range 3 {
		ids = append(ids, mustAdd(t, ada, NewMemory{ProjectID: "p", Content: fmt.Sprint("number ", i)}).ID)
	}
	share(t, ada, "p", "bob", MemberWriter)
	f := mustAddFile(t, ada, NewFile{ProjectID: "p"}, "content")
	for _, err := range []error{ada.DeleteMemory(t.Context(), ids[0], nil), bob.DeleteMemory(t.Context(), ids[1], nil),
		bob.DeleteFile(t.Context(), f.ID, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Accounts().DeleteUser(t.Context(), "ada", &DeletionOptions{WithMemories: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Upkeep().Purge(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	err := s.db.Read(t.Context(), func(tx db.Tx) error {
		var left int
		err := tx.QueryRow(`SELECT (SELECT count(*) FROM trash) + (SELECT count(*) FROM trash_item) + (SELECT count(*)
			FROM trash_link) +
			(SELECT count(*) FROM file) + (SELECT count(*) FROM file_chunk)`).Scan(&left)
		if left > 0 {
			t.Errorf("%d rows are left, want none", left)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	checkConsistency(t, s)
}

// What a first run of a Write has found does not count if the next run no longer finds it.
func TestAnEntryThatIsErasedMeanwhileIsNotRestored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "again.db")
	s, other := openRerunning(t, path), openWords(t, path, Options{})
	m := mustAdd(t, s, NewMemory{Content: "a kettle"})
	if err := s.DeleteMemory(t.Context(), m.ID, nil); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithValue(t.Context(), rerunning{}, func() {
		if err := other.Trash().Erase(t.Context(), m.ID); err != nil {
			t.Error(err)
		}
	})
	if got, err := s.Trash().Restore(ctx, m.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %+v, %v, want ErrNotFound", got, err)
	}
}

// A vector that cannot be read does not keep a memory in the trash: it is made again.
func TestAMemoryWithAnUnreadableVectorIsRestored(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "store.db"), Options{})
	m := mustAdd(t, s, NewMemory{Content: "the harbour wall needs paint"})
	if err := s.DeleteMemory(t.Context(), m.ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Write(t.Context(), func(tx db.Tx) error {
		result, err := tx.Exec(`UPDATE trash_item SET data = json_set(data, '$.passages[0].vector', 'AAAA')`)
		if err == nil && result.RowsAffected != 1 {
			t.Errorf("got %d changed entries of the trash, want 1", result.RowsAffected)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Trash().Restore(t.Context(), m.ID); err != nil {
		t.Fatalf("Restore: got %v, want no error", err)
	}
	found, err := s.Search(t.Context(), Query{Text: "paint the harbour"})
	if err != nil || len(found.Hits) != 1 || found.Hits[0].ID != m.ID {
		t.Errorf("a search afterwards: got %+v, %v, want the memory", found.Hits, err)
	}
}

// A changed byte in the trash is found, and remains damage after a restore. So does damage from before the deletion.
func TestDamageInTheTrashIsFound(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "damaged.db"), Options{})
	m := mustAdd(t, s, NewMemory{Content: "the sound content"})
	if err := s.DeleteMemory(t.Context(), m.ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Write(t.Context(), func(tx db.Tx) error {
		return tx.(*sqlite.Tx).ExecScript(`DROP TRIGGER hash_trash_item_changed; UPDATE trash_item ` +
			`SET data = replace(data, 'sound', 'wrong')`)
	}); err != nil {
		t.Fatal(err)
	}
	report := mustCheck(t, s, nil)
	if report.OK || report.Total != 1 || report.Findings[0].Table != "trash_item" || report.Findings[0].ID != m.ID {
		t.Errorf(`check says %+v, want not OK, total 1, table "trash_item" and ID %v`, report, m.ID)
	}
	for range 2 {
		if _, err := s.Trash().Restore(t.Context(), m.ID); err != nil {
			t.Fatal(err)
		}
		if report := mustCheck(t, s, nil); report.OK || report.Total != 1 || report.Findings[0].Table != "memory" ||
			report.Findings[0].ID != m.ID {
			t.Errorf(`check says %+v, want not OK, total 1, table "memory" and ID %v`, report, m.ID)
		}
		if err := s.DeleteMemory(t.Context(), m.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// A deleted user's memberships are gone, also in projects in the trash: another person may get the id later.
func TestARestoredProjectDoesNotBringBackDeletedMembers(t *testing.T) {
	for name, again := range map[string]bool{"an id without an account": false, "an id that another person has": true} {
		t.Run(name, func(t *testing.T) {
			s := openWords(t, "", Options{})
			addAccount(t, s, "u-ann", "ann")
			addAccount(t, s, "u-ben", "ben")
			addAccount(t, s, "u-eve", "eve")
			ann := s.As(Access{User: "u-ann"})
			mustAdd(t, ann, NewMemory{Content: "a plan", ProjectID: "p"})
			share(t, ann, "p", "ben", MemberWriter)
			share(t, ann, "p", "eve", MemberReader)
			noError(t, ann.DeleteProject(t.Context(), ProjectRef{ID: "p"}, &DeletionOptions{WithMemories: true}))
			noError(t, s.Accounts().DeleteUser(t.Context(), "ben", nil))
			if again {
				_, err := s.Accounts().AddUser(t.Context(), NewUser{ID: "u-ben", Name: "benjamin"})
				noError(t, err)
			}
			page, err := ann.Trash().Page(t.Context(), TrashQuery{})
			noError(t, err)
			_, err = ann.Trash().Restore(t.Context(), page.Entries[0].ID)
			noError(t, err)
			members, err := ann.Members(t.Context(), ProjectRef{ID: "p"})
			if err != nil || len(members) != 2 || members[1].User != "u-eve" {
				t.Errorf("got the members %+v, %v; want u-ann and u-eve", members, err)
			}
			if found, err := s.As(Access{User: "u-ben"}).Search(t.Context(), Query{}); err != nil || found.Total != 0 {
				t.Errorf("u-ben finds %d, %v; want 0", found.Total, err)
			}
			checkConsistency(t, s)
		})
	}
}

// A part whose collection or project is in the trash, too, waits for that. The rest does not, and the error says so.
func TestAPartWhosePlaceIsInTheTrashDoesNotHoldUpTheRest(t *testing.T) {
	for name, rest := range map[string]int{"in one transaction": 1, "in the second one": 201} {
		t.Run(name, func(t *testing.T) {
			s := openWords(t, "", Options{})
			mustAddCollection(t, s, NewCollection{Name: "books"})
			many := make([]NewMemory, rest)
			for i := range many {
				many[i] = NewMemory{Content: fmt.Sprint("note ", i), ProjectID: "p"}
			}
			_, err := s.AddMemories(t.Context(), many, nil)
			noError(t, err)
			mustAdd(t, s, NewMemory{Content: "a book", ProjectID: "p", Collection: "books"})
			noError(t, s.DeleteProject(t.Context(), ProjectRef{ID: "p"}, &DeletionOptions{WithMemories: true}))
			noError(t, s.DeleteCollection(t.Context(), "books", nil))
			page, err := s.Trash().Page(t.Context(), TrashQuery{})
			noError(t, err)
			project, books := page.Entries[1].ID, page.Entries[0].ID
			if _, err = s.Trash().Restore(t.Context(), project); !errors.Is(err, ErrConflict) ||
				errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), books) {
				t.Errorf("got %v, want ErrConflict that says what to restore first", err)
			}
			if found, err := s.Search(t.Context(), Query{ProjectID: "p"}); err != nil || found.Total != rest {
				t.Errorf("got %d memories restored, %v; want %d", found.Total, err, rest)
			}
			for _, id := range []string{books, project} {
				_, err = s.Trash().Restore(t.Context(), id)
				noError(t, err)
			}
			if found, err := s.Search(t.Context(), Query{ProjectID: "p"}); err != nil || found.Total != rest+1 {
				t.Errorf("got %d memories in the end, %v; want %d", found.Total, err, rest+1)
			}
			if page, err = s.Trash().Page(t.Context(), TrashQuery{}); err != nil || page.Total != 0 {
				t.Errorf("got %+v left in the trash, %v; want nothing", page.Entries, err)
			}
			checkConsistency(t, s)
		})
	}
}
