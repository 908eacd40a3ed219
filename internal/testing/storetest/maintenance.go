package storetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/souvenir-ai/souvenir"
)

func maintenance() concept {
	return concept{"Maintenance", []promise{
		{"a backup holds everything and goes on as a store of its own", backupHoldsEverything},
		{"a backup is the same as a file and as a stream", backupStream},
		{"a backup overwrites nothing", backupOverwritesNothing},
		{"a restored store is the one that was backed up", restoreGivesTheSame},
		{"restoring a file that is not a backup creates nothing", restoreRefuses},
		{"a sound store passes its check, which changes nothing", checkSound},
		{"reindexing keeps every memory and what finds it", reindexKeeps},
		{"reindexing ends a change of model", reindexEndsChange},
		{"purging keeps the newest revisions", purgeRevisions},
		{"compacting changes nothing that is stored", compactKeeps},
		{"the numbers are of all users", statsOfAll},
		{"a view gets none of it", maintenanceOfViews},
		{"an ended context ends each of them", maintenanceCancelled},
	}}
}

// sound checks that the store is intact after a test, if it is still open.
func (f *fixture) sound() {
	f.Helper()
	report, err := f.store.Upkeep().Check(context.Background(), nil)
	if errors.Is(err, souvenir.ErrClosed) {
		return
	}
	if err != nil || !report.OK {
		f.Errorf("the store does not pass its check: %+v, %v, want no error and OK", report.Findings, err)
	}
}

// elsewhere opens another store's file.
func (f *fixture) elsewhere(path string) *fixture {
	f.Helper()
	ctx := f.ctx
	if Opening != nil {
		ctx = Opening(ctx, f.T)
	}
	store, err := souvenir.Open(ctx, path, f.options(f.embedder))
	f.check("Open", err)
	f.Cleanup(func() { _ = store.Close() })
	other := *f
	other.store, other.reader = store, store
	return &other
}

// furnish stores an item of every kind.
func (f *fixture) furnish() {
	f.Helper()
	ids := f.addTexts("a red automobile", "a dog", chapters())
	f.rewrite(ids[1], "a puppy")
	f.patch(ids[0], map[string]any{"tags": []string{"traffic"}, "project_id": "p", "related_memory_ids": []string{ids[2]}})
	ownCollection(f, "own", 2)
	f.add(souvenir.NewMemory{Collection: "own", Content: "north", Embedding: []float32{0, 1}})
	f.as(souvenir.Access{User: "ann"}).addTexts("ann's bicycle")
}

// inFile reports whether the store can be backed up to a file. Otherwise Backup must return an error.
func (f *fixture) inFile() bool {
	f.Helper()
	c, err := f.operator.Upkeep().Configuration(f.ctx)
	f.check("Configuration", err)
	if c.Path != "" {
		return true
	}
	path := filepath.Join(f.TempDir(), "none.db")
	f.fails("Backup of a store that is not in a file", f.operator.Upkeep().Backup(f.ctx, path, nil), souvenir.ErrInvalid)
	if _, err := os.Stat(path); err == nil {
		f.Errorf("Backup of a store that is not in a file has made %s", path)
	}
	return false
}

// needsFile skips a promise of stores in files.
func (f *fixture) needsFile() {
	f.Helper()
	if !f.inFile() {
		f.Skip("this store is not in a file: its database has backups of its own")
	}
}

func (f *fixture) backup() string {
	f.Helper()
	path := filepath.Join(f.TempDir(), "backup.db")
	f.check("Backup", f.store.Upkeep().Backup(f.ctx, path, nil))
	return path
}

func backupHoldsEverything(f *fixture) {
	f.needsFile()
	f.furnish()
	want := f.list(souvenir.MemoryList{})
	path := filepath.Join(f.TempDir(), "backup.db")
	done, total := 0, -1
	f.check("Backup", f.store.Upkeep().Backup(f.ctx, path,
		&souvenir.BackupOptions{Progress: func(_ string, d, of int) { done, total = d, of }}))
	f.equal("progress at the end", done, total)
	copied := f.elsewhere(path)
	f.equal("memories", copied.list(souvenir.MemoryList{}), want)
	f.equal("ann's", len(copied.as(souvenir.Access{User: "ann"}).list(souvenir.MemoryList{})), 1)
	f.same("by meaning", copied.find("vehicle"), "a red automobile")
	f.same("by the word of a tag", copied.byWord("traffic"), "a red automobile")
	copied.addTexts("only in the copy")
	copied.sound()
	f.same("in the store", f.byWord("only"))
}

func backupStream(f *fixture) {
	f.needsFile()
	f.furnish()
	var b bytes.Buffer
	n, err := f.store.Upkeep().BackupTo(f.ctx, &b, nil)
	f.check("BackupTo", err)
	f.equal("bytes", n, int64(b.Len()))
	path := filepath.Join(f.TempDir(), "stream.db")
	f.check("WriteFile", os.WriteFile(path, b.Bytes(), 0o600))
	f.equal("memories", f.elsewhere(path).list(souvenir.MemoryList{}), f.list(souvenir.MemoryList{}))
}

func backupOverwritesNothing(f *fixture) {
	f.needsFile()
	path := f.backup()
	f.addTexts("x")
	f.failsAt("Backup to a file that exists", f.store.Upkeep().Backup(f.ctx, path, nil), souvenir.ErrConflict, "path",
		path)
	f.equal("memories in it", len(f.elsewhere(path).list(souvenir.MemoryList{})), 0)
	f.failsAt("Backup to no path", f.store.Upkeep().Backup(f.ctx, "", nil), souvenir.ErrInvalid, "path")
	f.failsAt("Backup into no folder", f.store.Upkeep().Backup(f.ctx, filepath.Join(f.TempDir(), "none", "x.db"), nil),
		souvenir.ErrNotFound, "path")
	_, err := f.store.Upkeep().BackupTo(f.ctx, nil, nil)
	f.failsAt("BackupTo nothing", err, souvenir.ErrInvalid, "w")
}

func restoreGivesTheSame(f *fixture) {
	f.needsFile()
	f.furnish()
	from, to := f.backup(), filepath.Join(f.TempDir(), "restored.db")
	f.addTexts("stored after the backup")
	f.check("Restore", souvenir.Restore(f.ctx, souvenir.Restoration{From: from, To: to, MasterKey: MasterKey}))
	restored := f.elsewhere(to)
	f.same("stored after it", restored.byWord("backup"))
	f.same("stored before", restored.find("vehicle"), "a red automobile")
	restored.sound()
}

func restoreRefuses(f *fixture) {
	f.needsFile()
	folder := f.TempDir()
	text := filepath.Join(folder, "text")
	f.check("WriteFile", os.WriteFile(text, bytes.Repeat([]byte("Dear diary. "), 500), 0o600))
	to := filepath.Join(folder, "to.db")
	f.fails("Restore of a text", souvenir.Restore(f.ctx, souvenir.Restoration{From: text, To: to}), souvenir.ErrForeign,
		text)
	f.failsAt("Restore of nothing", souvenir.Restore(f.ctx, souvenir.Restoration{From: to, To: to}), souvenir.ErrNotFound,
		"From", to)
	f.failsAt("Restore onto a file", souvenir.Restore(f.ctx,
		souvenir.Restoration{From: f.backup(), To: text, MasterKey: MasterKey}), souvenir.ErrConflict, "To", text)
	entries, err := os.ReadDir(folder)
	f.check("ReadDir", err)
	f.equal("files", len(entries), 1)
}

func checkSound(f *fixture) {
	f.furnish()
	before := f.list(souvenir.MemoryList{})
	for _, options := range []*souvenir.CheckOptions{nil, {Repair: true}} {
		report, err := f.store.Upkeep().Check(f.ctx, options)
		f.check("Check", err)
		f.equal("OK", report.OK, true)
		f.equal("findings", report.Findings, []souvenir.Finding{})
		f.equal("memories checked", report.Checked["memory"], 5)
	}
	f.equal("memories", f.list(souvenir.MemoryList{}), before)
}

func reindexKeeps(f *fixture) {
	f.furnish()
	before := f.list(souvenir.MemoryList{})
	last := -1
	f.check("Reindex", f.store.Upkeep().Reindex(f.ctx,
		&souvenir.ReindexingOptions{Progress: func(_ string, done, total int) { last = total - done }}))
	f.equal("left at the end", last, 0)
	f.equal("memories", f.list(souvenir.MemoryList{}), before)
	f.same("by meaning", f.find("vehicle"), "a red automobile")
	f.same("by the word of a tag", f.byWord("traffic"), "a red automobile")
	f.same("by a vector of one's own", fitting(f.search(souvenir.Query{Vector: []float32{0, 1}})), "north")
	f.embedder.Break(errOffline)
	if err := f.store.Upkeep().Reindex(f.ctx, nil); !errors.Is(err, errOffline) {
		f.Errorf("Reindex with a broken embedder: %v, want %v", err, errOffline)
	}
	f.embedder.Mend()
	f.same("by meaning after it", f.find("vehicle"), "a red automobile")
	f.check("Reindex", f.store.Upkeep().Reindex(f.ctx, nil))
}

func reindexEndsChange(f *fixture) {
	f.furnish()
	e := f.changing()
	e.Mend()
	f.check("Reindex", f.store.Upkeep().Reindex(f.ctx, nil))
	f.equal("changing", f.state().Changing, false)
	f.same("by meaning", f.find("vehicle"), "a red automobile")
}

func purgeRevisions(f *fixture) {
	id := f.addTexts("one")[0]
	for _, content := range []string{"two", "three", "four"} {
		f.rewrite(id, content)
	}
	purged, err := f.store.Upkeep().Purge(f.ctx, nil)
	f.check("Purge", err)
	f.equal("purged unasked", purged, souvenir.PurgeReport{})
	purged, err = f.store.Upkeep().Purge(f.ctx, &souvenir.PurgeOptions{KeepRevisions: 1})
	f.check("Purge", err)
	f.equal("purged", purged, souvenir.PurgeReport{Revisions: 2})
	left := f.revisions(id)
	f.equal("left", []string{left[0].Content, left[1].Content}, []string{"four", "three"})
	f.equal("how many", len(left), 2)
	_, err = f.store.RestoreRevision(f.ctx, id, 3)
	f.check("RestoreRevision", err)
	_, err = f.store.RestoreRevision(f.ctx, id, 1)
	f.fails("RestoreRevision of a purged one", err, souvenir.ErrNotFound)
	_, err = f.store.Upkeep().Purge(f.ctx, &souvenir.PurgeOptions{KeepRevisions: -1})
	f.failsAt("Purge", err, souvenir.ErrInvalid, "KeepRevisions", "-1")
}

func compactKeeps(f *fixture) {
	f.furnish()
	before := f.list(souvenir.MemoryList{})
	f.check("Compact", f.store.Upkeep().Compact(f.ctx))
	f.equal("memories", f.list(souvenir.MemoryList{}), before)
	f.same("by meaning", f.find("vehicle"), "a red automobile")
	stats, err := f.store.Upkeep().Stats(f.ctx)
	f.check("Stats", err)
	f.equal("free bytes", stats.FreeBytes, int64(0))
}

func statsOfAll(f *fixture) {
	f.furnish()
	stats, err := f.store.Upkeep().Stats(f.ctx)
	f.check("Stats", err)
	f.equal("memories, users, collections, projects, revisions",
		[]int{stats.Memories, stats.Users, stats.Collections, stats.Projects, stats.Revisions}, []int{5, 2, 3, 1, 2})
	f.equal("model and pending", []any{stats.Embedding.Model, stats.Embedding.Pending, stats.Embedding.Changing},
		[]any{"words-1", 0, false})
	if stats.DatabaseBytes <= 0 || stats.Passages < 6 {
		f.Errorf("got %+v, want database bytes more than 0 and passages at least 6", stats)
	}
}

// maintenanceCalls returns all methods for maintenance.
func (f *fixture) maintenanceCalls(ctx context.Context) []call {
	calls := []call{
		{"Check", false, func(s *souvenir.Store) error { _, err := s.Upkeep().Check(ctx, nil); return err }},
		{"Reindex", true, func(s *souvenir.Store) error { return s.Upkeep().Reindex(ctx, nil) }},
		{"Purge", true, func(s *souvenir.Store) error { _, err := s.Upkeep().Purge(ctx, nil); return err }},
		{"Compact", true, func(s *souvenir.Store) error { return s.Upkeep().Compact(ctx) }},
		{"Stats", false, func(s *souvenir.Store) error { _, err := s.Upkeep().Stats(ctx); return err }},
	}
	if !f.inFile() {
		return calls
	}
	return append(calls,
		call{"Backup", false, func(s *souvenir.Store) error {
			return s.Upkeep().Backup(ctx, filepath.Join(f.TempDir(), "x.db"), nil)
		}},
		call{"BackupTo", false, func(s *souvenir.Store) error {
			_, err := s.Upkeep().BackupTo(ctx, io.Discard, nil)
			return err
		}})
}

func maintenanceOfViews(f *fixture) {
	f.furnish()
	for _, c := range f.maintenanceCalls(f.ctx) {
		f.fails(c.name+" through a view", c.do(f.store.As(souvenir.Access{})), souvenir.ErrForbidden)
		f.check(c.name, c.do(f.store))
	}
	calls := f.maintenanceCalls(f.ctx)
	f.close()
	for _, c := range calls {
		f.fails(c.name+" of a closed store", c.do(f.store), souvenir.ErrClosed)
	}
}

func maintenanceCancelled(f *fixture) {
	f.furnish()
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	for _, c := range f.maintenanceCalls(ctx) {
		if err := c.do(f.store); !errors.Is(err, context.Canceled) {
			f.Errorf("%s with an ended context: %v, want context.Canceled", c.name, err)
		}
	}
	if !f.inFile() {
		return
	}
	if err := souvenir.Restore(ctx,
		souvenir.Restoration{From: f.backup(), To: filepath.Join(f.TempDir(), "x.db")}); !errors.Is(err, context.Canceled) {
		f.Errorf("Restore with an ended context: %v, want context.Canceled", err)
	}
}
