package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server/metrics"
)

// scheduled is a schedule over a small store, whose clock the test sets.
func scheduled(t *testing.T, keep int) (b schedule, store *souvenir.Store, now *time.Time, noted *[]metrics.Backup) {
	t.Helper()
	store, err := souvenir.Open(t.Context(), filepath.Join(t.TempDir(), "souvenir.db"), &souvenir.Options{IndexMemory: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if _, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: "Tea at four."}); err != nil {
		t.Fatal(err)
	}
	now, noted = new(time.Time), new([]metrics.Backup)
	*now = time.Date(2026, 11, 26, 3, 17, 0, 0, time.UTC)
	return schedule{dir: t.TempDir(), every: 24 * time.Hour, keep: keep, now: func() time.Time { return *now },
		note: func(m metrics.Backup) { *noted = append(*noted, m) }, announce: func(time.Duration) {}}, store, now, noted
}

// inFolder lists a folder, without the file that names its store.
func inFolder(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != folderOf {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestScheduledBackupsAreVerifiedAndTheNewestKept(t *testing.T) {
	b, store, now, _ := scheduled(t, 2)
	foreign := "souvenir-2026-11-21.db" // a person made it and decides about it
	if err := os.WriteFile(filepath.Join(b.dir, foreign), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		d, err := b.run(t.Context(), store)
		if err != nil || !d.OK || d.Memories != 1 {
			t.Fatalf("got %+v, %v; want a sound backup with a memory", d, err)
		}
		*now = now.Add(b.every)
	}
	want := []string{foreign, "souvenir-20261127T031700Z.db", "souvenir-20261128T031700Z.db"}
	if got := inFolder(t, b.dir); !slices.Equal(got, want) {
		t.Errorf("the folder has %v, want %v", got, want)
	}
	if due := b.due(b.look()); due != 0 {
		t.Errorf("a day later the next is due in %v, want now", due)
	}
	*now = now.Add(-time.Hour)
	if due := b.due(b.look()); due != time.Hour {
		t.Errorf("an hour before, the next is due in %v, want an hour", due)
	}
	*now = now.Add(-1000 * time.Hour)
	if due := b.due(b.look()); due != b.every {
		t.Errorf("with a clock that was ahead, the next is due in %v, want %v at most", due, b.every)
	}
}

// Changes by admins on the dashboard apply to the next backup, without a restart.
func TestAChangedScheduleCounts(t *testing.T) {
	longtest.Only(t)
	store, err := souvenir.Open(t.Context(), filepath.Join(t.TempDir(), "souvenir.db"), &souvenir.Options{IndexMemory: -1,
		BackupEvery: 24 * time.Hour, KeepBackups: 14,
		Changeable: []souvenir.SettingName{souvenir.SettingBackups, souvenir.SettingKept}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	b, _, now, _ := scheduled(t, 14)
	if _, err := b.run(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(2 * time.Hour)
	announced, made := make(chan time.Duration, 2), make(chan metrics.Backup, 2)
	b.announce, b.note = func(every time.Duration) { announced <- every }, func(m metrics.Backup) { made <- m }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.repeat(ctx, store, slog.New(slog.DiscardHandler), time.Millisecond)
	}()
	defer func() {
		cancel()
		<-done
	}()
	if every, at := <-announced, <-made; every != 24*time.Hour || at.Duration != 0 {
		t.Fatalf("it begins with %v and %+v; want a day, and no new backup", every, at)
	}
	hours := int64(1)
	if err := store.Upkeep().SetSetting(t.Context(), souvenir.SettingBackups, &hours); err != nil {
		t.Fatal(err)
	}
	if every := <-announced; every != time.Hour {
		t.Errorf("after the change it is %v, want an hour", every)
	}
	if at := <-made; at.Kept != 2 || !at.Made.Equal(*now) || at.Err != nil {
		t.Errorf("got %+v, want a second backup, made now", at)
	}
	if content, err := os.ReadFile(filepath.Join(b.dir, anchorsFile)); newestAnchor(string(content)) == nil {
		t.Errorf("after the backup: got %q, %v, want an anchor of the audit log", content, err)
	}
	kept := int64(7)
	if err := store.Upkeep().SetSetting(t.Context(), souvenir.SettingKept, &kept); err != nil {
		t.Fatal(err)
	}
	if set := b.asSet(t.Context(), store); set.keep != 7 {
		t.Errorf("%d backups are kept, want 7", set.keep)
	}
}

// Two stores that share a folder do not delete each other's backups: the second one is refused.
func TestABackupOfAnotherStoreStays(t *testing.T) {
	longtest.Only(t)
	b, store, now, _ := scheduled(t, 1)
	other, otherStore, _, _ := scheduled(t, 1)
	other.dir = b.dir
	user := func(s *souvenir.Store, name string) souvenir.User {
		u, err := s.Accounts().AddUser(t.Context(), souvenir.NewUser{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	first := user(store, "anna")
	user(otherStore, "anna")
	if _, err := b.run(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	before := inFolder(t, b.dir)
	if _, err := other.run(t.Context(), otherStore); err == nil || !strings.Contains(err.Error(), "another store") {
		t.Errorf("a second store: got %v, want an error that says so", err)
	}
	if got := inFolder(t, b.dir); !slices.Equal(got, before) {
		t.Errorf("the folder has %v, want %v", got, before)
	}
	// Users change; those who remain suffice to recognize the store.
	user(store, "ben")
	for range 2 {
		*now = now.Add(b.every)
		if _, err := b.run(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		err := store.Accounts().DeleteUser(t.Context(), first.ID, nil)
		if err != nil && !errors.Is(err, souvenir.ErrNotFound) {
			t.Fatal(err)
		}
	}
}

// If the clock was years ahead for a while, later backups have older names.
func TestABackupFromTheFutureReplacesNoOther(t *testing.T) {
	longtest.Only(t)
	b, store, now, _ := scheduled(t, 1)
	right := *now
	for _, at := range []time.Time{right.AddDate(70, 0, 0), right} {
		*now = at
		if _, err := b.run(t.Context(), store); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"souvenir-20261126T031700Z.db"}
	if got := inFolder(t, b.dir); !slices.Equal(got, want) {
		t.Errorf("the folder has %v, want %v", got, want)
	}
}

func TestABackupThatCannotBeVerifiedReplacesNoOther(t *testing.T) {
	longtest.Only(t)
	b, store, now, _ := scheduled(t, 1)
	if _, err := b.run(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	m, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: strings.Repeat("The word is kettle. ", 50)})
	if err != nil {
		t.Fatal(err)
	}
	damage(t, store, m.Content)
	*now = now.Add(b.every)
	for range 2 { // with one name
		if d, err := b.run(t.Context(), store); err == nil || d.OK {
			t.Fatalf("got %+v, %v; want a backup that is not sound", d, err)
		}
	}
	want := []string{"souvenir-20261126T031700Z.db", "souvenir-failed.unverified"}
	if got := inFolder(t, b.dir); !slices.Equal(got, want) {
		t.Errorf("the folder has %v, want %v", got, want)
	}
	if names, err := backups(b.dir); err != nil || len(names) != 1 {
		t.Errorf("backups are %v, %v; want the sound one", names, err)
	}
}

// If a server is killed during each backup, for lack of memory, it must not fill the disk: the next backup deletes its
// leftovers. Other files in the folder stay.
func TestABackupDeletesWhatAKilledOneLeft(t *testing.T) {
	longtest.Only(t)
	b, store, _, _ := scheduled(t, 2)
	others := []string{".souvenir-drill-7", "souvenir-failed.unverified", "tea.db.unverified"}
	for _, name := range append([]string{"souvenir-20261125T031700Z.db.unverified",
		"souvenir-20261125T031700Z.db.unverified.part-1", "souvenir-20261125T031700Z.db.unverified.part-1-journal"},
		others[1:]...) {
		if err := os.WriteFile(filepath.Join(b.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{others[0], filepath.Join(scheduledDrill, "half")} {
		if err := os.MkdirAll(filepath.Join(b.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.run(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	want := slices.Insert(others, 1, "souvenir-20261126T031700Z.db")
	if got := inFolder(t, b.dir); !slices.Equal(got, want) {
		t.Errorf("the folder has %v, want %v", got, want)
	}
}

// damage changes a letter of a text in a store's file, as a failing disk might.
func damage(t *testing.T, store *souvenir.Store, text string) {
	t.Helper()
	c, err := store.Upkeep().Configuration(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{c.Path, c.Path + "-wal"} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.ReplaceAll(string(content), text, strings.Replace(text, "kettle", "kettie", 1))
		if changed == string(content) {
			continue
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(changed)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACancelledBackupLeavesNothing(t *testing.T) {
	b, store, _, noted := scheduled(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.run(ctx, store); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if got := inFolder(t, b.dir); len(got) != 0 {
		t.Errorf("the folder has %v, want nothing", got)
	}
	if len(*noted) != 0 {
		t.Errorf("%v was noted, want nothing", *noted)
	}
}

func TestADrillRestoresTheNewestBackupOfAFolder(t *testing.T) {
	longtest.Only(t)
	b, store, now, _ := scheduled(t, 9)
	for range 2 {
		if _, err := b.run(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		*now = now.Add(b.every)
	}
	c := call{dir: t.TempDir()}
	d := decode[drilled](t, c.ok(t, "restore", "--drill", b.dir, "--json"))
	if !d.OK || d.Memories != 1 || filepath.Base(d.Backup) != "souvenir-20261127T031700Z.db" {
		t.Errorf("got %+v, want the newest backup, sound, with a memory", d)
	}
	if got := c.ok(t, "restore", "--drill", d.Backup); !strings.Contains(got, "; sound") {
		t.Errorf("got %q, want that it is sound", got)
	}
	if got := inFolder(t, b.dir); len(got) != 2 {
		t.Errorf("the folder has %v, want the two backups", got)
	}
	if o := c.run(t, "restore", "--drill", t.TempDir()); o.code != exitError || !strings.Contains(o.stderr, "no backup") {
		t.Errorf("an empty folder: got %+v, want an error", o)
	}
	bad := filepath.Join(t.TempDir(), "bad.db")
	if err := os.WriteFile(bad, []byte("no store"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := c.run(t, "restore", "--drill", bad); o.code != exitError || !strings.Contains(o.stderr, "cannot be restored") {
		t.Errorf("a file that is no backup: got %+v, want an error", o)
	}
}
