package systemtest

import (
	"context"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/storefile"
)

// oldFile makes a file of the schema before the contents of a project belonged to its owner, and fills it.
func oldFile(t *testing.T, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "old.db")
	names, err := fs.Glob(sqlite.Migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	upTo := fstest.MapFS{}
	for _, name := range names {
		if name == "0016_projects_own.sql" {
			break
		}
		content, err := fs.ReadFile(sqlite.Migrations(), name)
		if err != nil {
			t.Fatal(err)
		}
		upTo[name] = &fstest.MapFile{Data: content}
	}
	config := storefile.Config(path, time.Now)
	config.Migrations, config.Logger = upTo, slog.New(slog.DiscardHandler)
	file, err := sqlite.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	err = file.Write(context.Background(), func(tx db.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// Olga shares a project with Will, a writer. Fred was a member and has left. All three have stored memories in it, each
// in their own collections.
func TestMembersMemoriesInAProjectBelongToTheProject(t *testing.T) {
	path := oldFile(t,
		`INSERT INTO user (id, uid, created_at) VALUES (1, 'olga', 0), (2, 'will', 0), (3, 'fred', 0)`,
		`INSERT INTO profile (id, key, model, dimensions, created_at) `+
			`VALUES (7, 'own:2', 'own', 2, 0), (8, 'own:3', 'own', 3, 0)`,
		`INSERT INTO project (id, owner_id, uid, name, name_key, created_at, updated_at) `+
			`VALUES (1, 1, 'apollo', 'Apollo', 'apollo', 0, 0), (2, 2, 'boat', 'Boat', 'boat', 0, 0)`,
		`INSERT INTO project_member (project_id, user_id, role, created_at) VALUES (1, 2, 'writer', 0)`,
		`INSERT INTO collection (id, owner_id, name, description, own_profile, created_at, updated_at) VALUES
			(1, 1, 'default', '', NULL, 0, 0), (2, 2, 'default', '', NULL, 0, 0), (3, 3, 'default', '', NULL, 0, 0), (4, 2,
			'drafts', 'private', NULL, 5, 6),
			(5, 2, 'own', '', 7, 0, 0), (6, 1, 'own', '', 8, 0, 0), (7, 3, 'own', '', NULL, 0, 0)`,
		`INSERT INTO partition (id, collection_id, project_id) `+
			`VALUES (1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 4, 1), (5, 2, NULL), (6, 5, 1), (7, 6, NULL), (8, 7, 1), (9, 4, 2), `+
			`(10, 3, NULL)`,
		`INSERT INTO memory (id, uid, partition_id, content, event_type, state, rule_type, metadata, revision, created_at,
			updated_at) VALUES
			(1, 'o', 1, 'olga in apollo', NULL, NULL, NULL, '{}', 1, 1, 1), (2, 'w', 2, 'will in apollo', NULL, NULL, NULL,
			'{}', 2, 2, 2),
			(3, 'f', 3, 'fred in apollo', NULL, NULL, NULL, '{}', 1, 3, 3), (4, 'd', 4, 'draft in apollo', NULL, NULL, NULL,
			'{}', 1, 4, 4),
			(5, 'p', 5, 'will in private', NULL, NULL, NULL, '{}', 1, 5, 5), (6, 'v', 6, 'vector in apollo', NULL, NULL, NULL,
			'{}', 1, 6, 6),
			(7, 'r', 3, 'a rule of apollo', 'project-rule', NULL, 'do', '{}', 1, 7, 7), (8, 'i', 3, 'I am Fred', 'identity',
			NULL, NULL, '{}', 1, 8, 8),
			(9, 'b', 9, 'will in his boat', NULL, NULL, NULL, '{}', 1, 9, 9), (10, 'z', 8, 'plain in apollo', NULL, NULL, NULL,
			'{}', 1, 10, 10),
			(11, 'out', 10, 'taken out', NULL, NULL, NULL, '{}', 2, 11, 11)`,
		`INSERT INTO memory_revision (memory_id, revision, partition_id, content, attributes, created_at) VALUES
			(2, 1, 2, 'will was in apollo', '{}', 1), (11, 1, 3, 'was in apollo', '{}', 1)`,
		`INSERT INTO file (uid, owner_id, memory_id, project_id, state, filename, mime_type, size, sha256, description,
			category, created_at, updated_at) VALUES
			('fileoffred', 3, 3, NULL, 'stored', 'f', 'text/plain', 0,
			x'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', '', '', 0, 0),
			('fileofwill', 2, NULL, 1, 'stored', 'f', 'text/plain', 0,
			x'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', '', '', 0, 0),
			('private', 2, 5, NULL, 'stored', 'f', 'text/plain', 0,
			x'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', '', '', 0, 0)`)
	s := openWords(t, file{path}, Options{})
	report, err := s.Upkeep().Check(t.Context(), &CheckOptions{Repair: true}) // this file lacks passages
	if err != nil || report.Total > 0 && report.Repaired == 0 {
		t.Fatalf("got %+v, %v; want nothing to repair, or a repair", report, err)
	}
	for user, want := range map[string][]string{
		"olga": {"d", "f", "i", "o", "r", "v", "w", "z"}, "will": {"b", "d", "f", "i", "o", "p", "r", "v", "w", "z"},
		"fred": {"out"},
	} {
		view := s.As(Access{User: user})
		var seen []string
		for m, err := range view.Memories(t.Context(), MemoryList{}) {
			if err != nil {
				t.Fatal(err)
			}
			if m.ProjectID == "apollo" && m.Owner != "olga" {
				t.Errorf(`%s of the project belongs to %s, want "olga"`, m.ID, m.Owner)
			}
			seen = append(seen, m.ID)
		}
		if slices.Sort(seen); !slices.Equal(seen, want) {
			t.Errorf("%s sees %v, want %v", user, seen, want)
		}
		if found, err := view.Search(t.Context(), Query{Text: "in"}); err != nil || found.Total == 0 && user != "fred" {
			t.Errorf("%s finds %d, %v, want at least one, except for fred", user, found.Total, err)
		}
		var files []string
		for f, err := range view.Files(t.Context(), FileList{}) {
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f.ID+" "+f.Owner)
		}
		wantFiles := map[string][]string{"olga": {"fileoffred olga", "fileofwill olga"},
			"will": {"fileoffred olga", "fileofwill olga", "private will"}}
		if slices.Sort(files); !slices.Equal(files, wantFiles[user]) {
			t.Errorf("%s has the files %v, want %v", user, files, wantFiles[user])
		}
	}
	checkOldFile(t, s)
}

// checkOldFile checks where the migrated rows are, and that the store works with them.
func checkOldFile(t *testing.T, s *Store) {
	t.Helper()
	olga, fred := s.As(Access{User: "olga"}), s.As(Access{User: "fred"})
	collections, err := olga.Collections(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range collections {
		names = append(names, c.Name+" "+c.Description+c.Embedder)
	}
	model := wordEmbedder("words-1").Model()
	if want := []string{"default " + model, "drafts " + model, "own own", "own (5) own", "own (7) " +
		model}; !slices.Equal(names, want) {
		t.Errorf("olga has the collections %q, want %q", names, want)
	}
	if _, err := olga.GetIdentityMemory(t.Context()); err == nil {
		t.Error("what a member stored is the owner's identity, want an error")
	}
	if all, err := fred.Revisions(t.Context(), "out"); err != nil || len(all) != 1 {
		t.Errorf("a former member has %d past versions of the memory he took out, %v; want 1", len(all), err)
	}
	if r, err := olga.Rules(t.Context(), ProjectRef{ID: "apollo"}); err != nil || r.Do == nil || r.Do.ID != "r" {
		t.Errorf(`the rules are %+v, %v, want no error and the do rule "r"`, r, err)
	}
	for _, id := range []string{"w", "f"} { // which are in other partitions of the same project
		if m, err := olga.UpdateMemory(t.Context(), id,
			MemoryUpdate{ShownMetadata: map[string]any{"project_id": "apollo"}}); err != nil ||
			m.Revision != map[string]int{"w": 2, "f": 1}[id] {
			t.Errorf("changed in nothing it is %+v, %v, want no error and revision %v", m, err,
				map[string]int{"w": 2, "f": 1}[id])
		}
		if m, err := olga.UpdateMemory(t.Context(), id, MemoryUpdate{Content: content("rewritten")}); err != nil ||
			m.Content != "rewritten" {
			t.Errorf("changed it is %+v, %v; want content \"rewritten\"", m, err)
		}
	}
	if report, err := s.Upkeep().Check(t.Context(), nil); err != nil || report.Total != 0 {
		t.Errorf("a check finds %+v, %v; got %v, want 0", report.Findings, err, report.Total)
	}
	if err := olga.DeleteProject(t.Context(),
		ProjectRef{ID: "apollo"}, &DeletionOptions{WithMemories: true}); err != nil {
		t.Error(err)
	}
}

// Check finds rows of a project that are stored with another user, and gives them to the project's owner.
func TestCheckFindsRowsOfTheWrongOwner(t *testing.T) {
	s := openWords(t, emptyInFile(t), Options{})
	for _, id := range []string{"olga", "will"} {
		mustAddUser(t, s, NewUser{ID: id, Name: id + "'s account"})
	}
	olga, will := s.As(Access{User: "olga"}), s.As(Access{User: "will"})
	mustAddProject(t, olga, NewProject{ID: "p"})
	share(t, s, "olga", "p", "will", MemberWriter)
	id := mustAdd(t, will, NewMemory{Content: "a tea pot", ProjectID: "olga/p"}).ID
	mustAdd(t, will, NewMemory{Content: "a cup"})
	mustExec(t, s, `UPDATE partition SET collection_id = (SELECT c.id FROM collection c `+
		`JOIN users u ON u.id = c.owner_id WHERE u.uid = 'will') WHERE project_id IS NOT NULL`)
	if report, err := s.Upkeep().Check(t.Context(), &CheckOptions{Repair: true}); err != nil || report.Total != 1 ||
		report.Repaired != 1 {
		t.Errorf("got %+v, %v, want no error, total 1 and repaired 1", report, err)
	}
	if m, err := olga.GetMemory(t.Context(), id); err != nil || m.Owner != "olga" || m.Collection != DefaultCollection {
		t.Errorf(`it is %+v, %v, want no error, owner "olga" and collection %v`, m, err, DefaultCollection)
	}
	checkConsistency(t, s)
}
