package souvenir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/trash"
)

// counting is an embedder that records its texts, and first calls a function.
type counting struct {
	mu     sync.Mutex
	texts  map[string]int
	before func(texts []string) error
}

func (c *counting) embedder() Embedder {
	words := wordEmbedder("words-1")
	return EmbedderFunc("words-1", wordSize,
		func(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error) {
			c.mu.Lock()
			before := c.before
			for _, text := range texts {
				c.texts[text]++
			}
			c.mu.Unlock()
			if before != nil {
				if err := before(texts); err != nil {
					return nil, err
				}
			}
			return words.Embed(ctx, purpose, texts)
		})
}

func (c *counting) set(before func(texts []string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before, c.texts = before, map[string]int{}
}

// addNumbered adds n memories and returns their contents.
func addNumbered(tb testing.TB, s *Store, n int) []string {
	tb.Helper()
	many := make([]NewMemory, n)
	contents := make([]string, n)
	for i := range many {
		contents[i] = fmt.Sprintf("the kettle number n%d", i)
		many[i] = NewMemory{Content: contents[i], Tags: []string{fmt.Sprint("t", i)}}
	}
	if _, err := s.AddMemories(context.Background(), many, nil); err != nil {
		tb.Fatal(err)
	}
	return contents
}

func TestReindexMakesEverythingAnew(t *testing.T) {
	longtest.Only(t)
	for _, path := range []string{":memory:", filepath.Join(t.TempDir(), "reindex.db")} {
		c := counting{texts: map[string]int{}}
		s := openWords(t, path, Options{Embedder: c.embedder()})
		id := varied(t, s)
		contents := addNumbered(t, s, 300)
		// As an earlier version with other terms, and a model that changed but kept its name, would have left it.
		damage(t, s, `UPDATE passage SET vector = (SELECT vector FROM passage WHERE vector IS NOT NULL AND profile_id = 1 `+
			`ORDER BY id DESC LIMIT 1) WHERE profile_id = 1 AND vector IS NOT NULL`,
			`INSERT INTO passage_text (passage_text) VALUES ('delete-all')`,
			`INSERT INTO passage_text (rowid, content, tags) SELECT id, 'other words', '' FROM passage`)
		before := idsOf(t, s)
		c.set(nil)
		var last, total int
		err := s.Upkeep().Reindex(t.Context(), &ReindexingOptions{Progress: func(stage string, done, of int) {
			if stage != "reindex" || done < last || done > of {
				t.Errorf(`%s %d, want stage "reindex" and %d to %d`, stage, done, last, of)
			}
			last, total = done, of
		}})
		if err != nil {
			t.Fatal(err)
		}
		if last != len(before) || total != len(before) {
			t.Errorf("the progress ends at %d of %d, want %d of as many", last, total, len(before))
		}
		for _, text := range contents {
			if c.texts[text] != 1 {
				t.Errorf("%q was embedded %d times, want 1", text, c.texts[text])
			}
		}
		if c.texts["north kettle"] != 0 {
			t.Errorf("a text with a vector of the caller's own was embedded: got %v, want 0", c.texts["north kettle"])
		}
		checkConsistency(t, s)
		if report := mustCheck(t, s, nil); !report.OK {
			t.Errorf("got %+v, want OK", report)
		}
		found, err := s.Search(t.Context(), Query{Text: "kettle w17 besides", Limit: 1})
		if err != nil || len(found.Hits) != 1 || found.Hits[0].ID != id || found.Hits[0].Parts.Vector < 0.9 {
			t.Errorf("got %+v, %v, want no error, 1 hit, ID %v and vector at least 0.9", found.Hits, err, id)
		}
		found, err = s.Search(t.Context(), Query{Vector: []float32{0, 1, 0}, Collections: []string{"own"}, Limit: 1})
		if err != nil || len(found.Hits) != 1 || found.Hits[0].Parts.Vector < 0.99 {
			t.Errorf("own vectors: %+v, %v, want no error, 1 hit and vector at least 0.99", found.Hits, err)
		}
		if after := idsOf(t, s); len(after) != len(before) {
			t.Errorf("%d memories became %d, want all kept", len(before), len(after))
		}
		c.set(nil)
		if err := s.Upkeep().Reindex(t.Context(), nil); err != nil || len(c.texts) < 300 {
			t.Errorf("once more: %d texts, %v; want at least 300", len(c.texts), err)
		}
	}
}

func TestReindexContinuesWhereItStopped(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "resume.db")
	c := counting{texts: map[string]int{}}
	s := openWords(t, path, Options{Embedder: c.embedder()})
	contents := addNumbered(t, s, 300)
	ctx, cancel := context.WithCancel(t.Context())
	c.set(nil)
	err := s.Upkeep().Reindex(ctx, &ReindexingOptions{Progress: func(_ string, done, _ int) {
		if done >= 100 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	first := c.texts
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openWords(t, path, Options{Embedder: c.embedder()})
	broken := errors.New("no more today")
	asked := 0
	c.set(func([]string) error {
		if asked++; asked > 1 {
			return broken
		}
		return nil
	})
	if err := s.Upkeep().Reindex(t.Context(), nil); !errors.Is(err, broken) {
		t.Fatalf("with a broken embedder: %v, want %v", err, broken)
	}
	c.set(nil)
	began := -1
	err = s.Upkeep().Reindex(t.Context(), &ReindexingOptions{Progress: func(_ string, done, _ int) {
		if began < 0 {
			began = done
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if began < 150 || began >= 300 || len(c.texts) != 300-began {
		t.Errorf("the third run begins at %d and embeds %d texts, want 150 or more, less than 300 and %v texts",
			began, len(c.texts), 300-began)
	}
	for _, text := range contents[:100] {
		if first[text] != 1 || c.texts[text] != 0 {
			t.Errorf("%q was embedded %d times in the first run and %d in the last, want 1 and 0", text, first[text],
				c.texts[text])
		}
	}
	checkConsistency(t, s)
}

func TestReindexBesideWritesAndSearchesLosesNothing(t *testing.T) {
	longtest.Only(t)
	c := counting{texts: map[string]int{}}
	s := openWords(t, filepath.Join(t.TempDir(), "beside.db"), Options{Embedder: c.embedder()})
	addNumbered(t, s, 200)
	var all []string
	for id := range idsOf(t, s) {
		all = append(all, id)
	}
	calls := 0
	c.set(func(texts []string) error {
		if len(texts) < 2 || calls > 10 {
			return nil
		}
		calls++
		// During the reindexing, one memory changes, one is deleted, one is added, one moves, and one gets new tags.
		for i, change := range []MemoryUpdate{{Content: content(fmt.Sprint("changed meanwhile c", calls))},
			{ShownMetadata: map[string]any{"project_id": "elsewhere"}},
			{ShownMetadata: map[string]any{"tags": []string{"retagged"}}}} {
			if _, err := s.UpdateMemory(context.Background(), all[calls*5+i], change); err != nil {
				t.Error(err)
			}
		}
		if err := s.DeleteMemory(context.Background(), all[calls*5+3], nil); err != nil {
			t.Error(err)
		}
		found, err := s.Search(context.Background(), Query{Text: "kettle", Limit: 5})
		if err != nil || len(found.Hits) != 5 || len(found.Warnings) > 0 || found.Hits[0].Parts.Vector == 0 {
			t.Errorf("a search meanwhile: %+v, %v, want no error, 5 hits, no warnings and vector other than 0", found, err)
		}
		return nil
	})
	if err := s.Upkeep().Reindex(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if calls < 4 {
		t.Errorf("only %d batches were embedded, want at least 4", calls)
	}
	if n := len(idsOf(t, s)); n != 200-calls {
		t.Errorf("%d memories are left of 200, %d were deleted; want %v", n, calls, 200-calls)
	}
	checkConsistency(t, s)
	if report := mustCheck(t, s, nil); !report.OK {
		t.Errorf("got %+v, want OK", report)
	}
}

func TestReindexKeepsATextThatIsRefused(t *testing.T) {
	c := counting{texts: map[string]int{}}
	s := openWords(t, "", Options{Embedder: c.embedder()})
	addNumbered(t, s, 100)
	c.set(func(texts []string) error {
		if strings.Contains(strings.Join(texts, "|"), "n17") {
			return errors.New("refused")
		}
		return nil
	})
	if err := s.Upkeep().Reindex(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	e, err := s.Upkeep().EmbeddingStatus(t.Context())
	if err != nil || e.Pending != 1 {
		t.Errorf("%+v, %v; want pending 1", e, err)
	}
	c.set(nil)
	if err := s.Upkeep().WaitEmbedded(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestReindexIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "refused.db")
	s := openWords(t, path, Options{})
	addNumbered(t, s, 10)
	if err := s.As(Access{}).Upkeep().Reindex(t.Context(), nil); !errors.Is(err, ErrForbidden) {
		t.Errorf("through a view: %v, want ErrForbidden", err)
	}
	readOnly := openWords(t, path, Options{ReadOnly: true})
	if err := readOnly.Upkeep().Reindex(t.Context(), nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("read-only: %v, want ErrReadOnly", err)
	}
	other := openWords(t, path, Options{Embedder: wordEmbedder("words-2")})
	if err := s.Upkeep().Reindex(t.Context(), nil); !errors.Is(err, ErrConflict) {
		t.Errorf("after another process has changed the model: %v, want ErrConflict", err)
	}
	if err := other.Upkeep().Reindex(t.Context(), nil); err != nil {
		t.Errorf("by the one that has: %v", err)
	}
	if e, err := other.Upkeep().EmbeddingStatus(t.Context()); err != nil || e.Changing || e.Pending != 0 {
		t.Errorf("after a whole reindexing: got %+v, %v, want no error, no change of model under way and none pending",
			e, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Upkeep().Reindex(t.Context(), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v, want ErrClosed", err)
	}
}

func TestPurgeKeepsTheNewestRevisions(t *testing.T) {
	s := openWords(t, "", Options{})
	memories := make([]NewMemory, 250)
	for i := range memories {
		memories[i].Content = fmt.Sprint("n", i)
	}
	all, err := s.AddMemories(t.Context(), memories, nil)
	if err != nil {
		t.Fatal(err)
	}
	revised := fmt.Sprintf(`memory.id > (SELECT id FROM memory WHERE uid = '%s')`, all[3].ID)
	damage(t, s, `INSERT INTO memory_revision (memory_id, revision, partition_id, content, attributes, created_at)
		SELECT memory.id, r.value, partition_id, 'former', '{}', 0 FROM memory, json_each('[1,2,3,4]') r WHERE `+revised,
		`UPDATE memory SET revision = 5 WHERE `+revised)
	for _, c := range []struct{ keep, deleted, left int }{{0, 0, 4}, {4, 0, 4}, {3, 246, 3}, {1, 492, 1}, {9, 0, 1}} {
		p, err := s.Upkeep().Purge(t.Context(), &PurgeOptions{KeepRevisions: c.keep})
		if err != nil || p.Revisions != c.deleted {
			t.Errorf("keeping %d: %+v, %v; want %d deleted", c.keep, p, err, c.deleted)
		}
		revisions, err := s.Revisions(t.Context(), all[100].ID)
		if err != nil || len(revisions) != c.left+1 || c.left > 0 && revisions[1].Number != 4 {
			t.Errorf("keeping %d: %+v, %v, want the newest ones", c.keep, revisions, err)
		}
	}
	if report := mustCheck(t, s, nil); !report.OK {
		t.Errorf("got %+v, want OK", report)
	}
	if _, err := s.Upkeep().Purge(t.Context(), &PurgeOptions{KeepRevisions: -1}); !errors.Is(err, ErrInvalid) {
		t.Errorf("keeping less than none: %v, want ErrInvalid", err)
	}
	if p, err := s.Upkeep().Purge(t.Context(), nil); err != nil || p != (PurgeReport{}) {
		t.Errorf("with nothing to purge: %+v, %v, want no error and %v", p, err, PurgeReport{})
	}
	if _, err := s.As(Access{}).Upkeep().Purge(t.Context(), nil); !errors.Is(err, ErrForbidden) {
		t.Errorf("through a view: %v, want ErrForbidden", err)
	}
}

func TestCompactGivesFreePagesBack(t *testing.T) {
	longtest.Only(t)
	path := filepath.Join(t.TempDir(), "compact.db")
	s := openWords(t, path, Options{})
	for _, s := range []*Store{s, openWords(t, ":memory:", Options{})} {
		varied(t, s)
		mustAddCollection(t, s, NewCollection{Name: "big"})
		many := make([]NewMemory, 300)
		for i := range many {
			many[i] = NewMemory{Collection: "big", Content: fmt.Sprint(i, strings.Repeat(" and so on", 300))}
		}
		if _, err := s.AddMemories(t.Context(), many, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteCollection(t.Context(),
			"big", &DeletionOptions{WithMemories: true, Erase: true}); err != nil {
			t.Fatal(err)
		}
		before, err := s.Upkeep().Stats(t.Context())
		if err != nil || before.FreeBytes < 1<<20 {
			t.Fatalf("nothing is free: %+v, %v; want freeBytes at least %v", before, err, 1<<20)
		}
		rows := rowsOf(t, s)
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Upkeep().Compact(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v, want context.Canceled", err)
		}
		if err := s.Upkeep().Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		after, err := s.Upkeep().Stats(t.Context())
		if err != nil || after.FreeBytes != 0 || after.DatabaseBytes > before.DatabaseBytes-before.FreeBytes/2 {
			t.Errorf("before %+v, after %+v, %v, want no error, free bytes 0 and database bytes at most %v", before, after, err,
				before.DatabaseBytes-before.FreeBytes/2)
		}
		if rowsOf(t, s) != rows {
			t.Errorf("compacting changed the stored data, want %v", rows)
		}
		mustAdd(t, s, NewMemory{Content: "stored after it"})
		checkConsistency(t, s)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 2<<20 {
		t.Errorf("the file has still %d bytes: %v, want at most %v", info.Size(), err, 2<<20)
	}
	if err := s.As(Access{}).Upkeep().Compact(t.Context()); !errors.Is(err, ErrForbidden) {
		t.Errorf("through a view: %v, want ErrForbidden", err)
	}
	if err := openWords(t, path, Options{ReadOnly: true}).Upkeep().Compact(t.Context()); !errors.Is(err, ErrReadOnly) {
		t.Errorf("read-only: %v, want ErrReadOnly", err)
	}
}

func TestStatsCountEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stats.db")
	s := openWords(t, path, Options{})
	empty, err := s.Upkeep().Stats(t.Context())
	if err != nil || empty.Memories != 0 || empty.DatabaseBytes == 0 || empty.Embedding.Model != "words-1" ||
		empty.Embedding.Dimensions != wordSize {
		t.Errorf("empty: %+v, %v, want no memories, and the model", empty, err)
	}
	addAccount(t, s, LocalUser, "") // a row without data, which each write leaves, is not a user
	addAccount(t, s, "ben", "ben")
	if st, err := s.Upkeep().Stats(t.Context()); err != nil || st.Users != 1 {
		t.Errorf("with one account: %+v, %v; want users 1", st, err)
	}
	varied(t, s)
	mustAdd(t, s.As(Access{User: "ann"}), NewMemory{Content: "ann's"})
	st, err := s.Upkeep().Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var passages int
	if err := s.db.Read(t.Context(),
		func(tx db.Tx) error { return tx.QueryRow(`SELECT count(*) FROM passage`).Scan(&passages) }); err != nil {
		t.Fatal(err)
	}
	want := st
	want.Users, want.Collections, want.Projects, want.Memories, want.Passages, want.Revisions, want.Files,
		want.FileBytes = 3, 3, 2, 8, passages, 2, 1, 3
	want.Embedding.Passages, want.Embedding.Pending, want.Embedding.Changing = passages, 0, false
	if st != want || passages < 10 || st.LogBytes == 0 {
		t.Errorf("%+v, want %+v", st, want)
	}
	encoded, err := json.Marshal(st)
	if err != nil || !strings.Contains(string(encoded), `"memories":8`) ||
		!strings.Contains(string(encoded), `"log_bytes"`) {
		t.Errorf(`as JSON: %s, %v, want no error, "memories":8 in the encoded and "log_bytes" in the encoded`, encoded, err)
	}
	damage(t, s, `UPDATE passage SET vector = NULL WHERE profile_id = 1 AND start > 0`)
	if st, err = s.Upkeep().Stats(t.Context()); err != nil || st.Embedding.Pending == 0 {
		t.Errorf("with passages that wait: %+v, %v, want no error and some pending", st, err)
	}
	if _, err := s.As(Access{}).Upkeep().Stats(t.Context()); !errors.Is(err, ErrForbidden) {
		t.Errorf("through a view: %v, want ErrForbidden", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Upkeep().Stats(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v, want ErrClosed", err)
	}
}

func TestPurgeDeletesExpiredData(t *testing.T) {
	s := openWords(t, "", Options{})
	s.worker.Stop() // it would remove the files first
	mustAdd(t, s, NewMemory{Content: "kept"})
	damage(t, s,
		`INSERT INTO token (uid, user_id, name, hash, prefix, scopes, created_at, expires_at) `+
			`VALUES ('old', 1, 'n', zeroblob(32), 'p', '[]', 0, 1), ('new', 1, 'n', randomblob(32), 'p', '[]', 0, NULL)`,
		`INSERT INTO signing_key (kid, algorithm, private_key, created_at, retired_at) `+
			`VALUES ('old', 'ES256', x'01', 0, 1), ('new', 'ES256', x'01', 0, NULL)`,
		fileRows("half", []byte("a"), []byte("b"))+`UPDATE file SET state = 'leaving' WHERE uid = 'half';`,
		fileRows("begun", []byte("a"))+`UPDATE file SET state = 'arriving' WHERE uid = 'begun';`,
		fileRows("whole", []byte("a")))
	p, err := s.Upkeep().Purge(t.Context(), nil)
	if err != nil || p != (PurgeReport{Files: 2, Tokens: 1, OAuth: 1}) {
		t.Errorf("got %+v, %v, want no error and %v", p, err, PurgeReport{Files: 2, Tokens: 1, OAuth: 1})
	}
	for table, want := range map[string]string{"token": "new", "file": "whole"} {
		var left []string
		if err := s.db.Read(t.Context(), func(tx db.Tx) (err error) {
			left, err = db.Column[string](tx, `SELECT uid FROM `+table)
			return err
		}); err != nil || len(left) != 1 || left[0] != want {
			t.Errorf("of %s %v are left, want %s: %v", table, left, want, err)
		}
	}
	if report := mustCheck(t, s, nil); !report.OK {
		t.Errorf("got %+v, want OK", report)
	}
	if again, err := s.Upkeep().Purge(t.Context(), nil); err != nil || again != (PurgeReport{}) {
		t.Errorf("again: %+v, %v, want no error and again %v", again, err, PurgeReport{})
	}
}

// shut is a database that fails while it is on.
type shut struct {
	db.DB
	on bool
}

func (d *shut) Read(ctx context.Context, fn func(db.Tx) error) error {
	if d.on {
		return db.ErrBusy
	}
	return d.DB.Read(ctx, fn)
}

func TestTracesAreRemovedByTheNextRoundAfterAFailure(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "traces.db"), Options{})
	s.worker.Stop()
	s.tidy(t.Context())
	mustExec(t, s, `INSERT INTO setting (key, value) VALUES (?, 1)
		ON CONFLICT (key) DO UPDATE SET value = 1`, trash.SettingErasure)
	s.erased.Store(true)
	d := &shut{DB: s.db.DB, on: true}
	s.db.DB = d
	s.tidy(t.Context())
	d.on = false
	s.tidy(t.Context())
	var due int64
	err := s.db.Read(t.Context(), func(tx db.Tx) (err error) {
		due, err = kernel.Setting(tx, trash.SettingErasure)
		return err
	})
	if err != nil || due != 0 {
		t.Errorf("the erasure that is due: got %d, %v; want 0", due, err)
	}
}
