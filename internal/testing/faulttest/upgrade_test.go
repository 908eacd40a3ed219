//go:build linux && !souvenir_cgo

package faulttest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/sqlite/disktest"
	"github.com/souvenir-ai/souvenir/internal/storefile"
	"github.com/souvenir-ai/souvenir/internal/testing/linediff"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// upgrade is the migration of a file that an old program made.
type upgrade struct {
	disk      *disktest.Disk
	recording *disktest.Recording
	folder    string
	old       oldFile
	rows      string // of the old file
	state     string // of the store after an undisturbed migration
	newest    int    // the version then
	moments   int    // how many changes of the disk the migration makes
	calls     map[disktest.Kind]int
	seen      map[string]bool // the images so far
	counts    map[string]int
}

// newUpgrade migrates a file undisturbed.
func newUpgrade(tb testing.TB, disk *disktest.Disk, old oldFile) *upgrade {
	tb.Helper()
	u := &upgrade{disk: disk, folder: filepath.Join(tb.TempDir(), "old"), old: old, calls: map[disktest.Kind]int{},
		seen: map[string]bool{}, counts: map[string]int{}}
	u.start(tb)
	version, rows, err := rowsOf(tb, u.folder)
	if err != nil || version != old.version {
		tb.Fatalf("version %d: got version %d, %v, want the version of the file", old.version, version, err)
	}
	u.rows = rows
	u.start(tb)
	recording, end, err := disk.Record(u.folder)
	if err != nil {
		tb.Fatal(err)
	}
	defer end()
	seen := disktest.Fault{Folder: u.folder, After: 1 << 30}
	stop := disk.Fail(&seen)
	r := &runner{ctx: context.Background(), step: len(script)}
	if err := r.open(u.folder); err != nil {
		tb.Fatal(err)
	}
	u.recording, u.moments = recording, disk.Now()
	stop()
	for kind, n := range seen.Seen {
		u.calls[disktest.Kind(kind)] = n
	}
	if u.state, err = u.end(tb, r); err == nil {
		u.newest, _, err = rowsOf(tb, u.folder)
	}
	if err != nil {
		tb.Fatalf("version %d: %v", old.version, err)
	}
	return u
}

// start writes the old file.
func (u *upgrade) start(tb testing.TB) {
	tb.Helper()
	write(tb, u.folder, map[string][]byte{storeName: u.old.content})
}

// end checks an open store, closes it and returns its state.
func (u *upgrade) end(tb testing.TB, r *runner) (held string, err error) {
	tb.Helper()
	defer func() { err = errors.Join(err, r.store.Close()) }()
	if err := r.store.Upkeep().WaitEmbedded(r.ctx); err != nil {
		return "", err
	}
	if report, err := r.store.Upkeep().Check(r.ctx, nil); err != nil || !report.OK {
		return "", fmt.Errorf("the check says %.1000v, %w", report.Findings, err)
	}
	return state(tb, r.store)
}

// rowsOf returns the version of a file's schema, and the rows of all its tables.
func rowsOf(tb testing.TB, folder string) (version int, rows string, err error) {
	tb.Helper()
	file, err := sqlite.Open(tb.Context(), sqlite.Config{Path: filepath.Join(folder, storeName),
		ApplicationID: storefile.ApplicationID, Migrations: sqlite.Migrations(), ReadOnly: true, AnyVersion: true})
	if err != nil {
		return 0, "", err
	}
	err = file.Read(tb.Context(), func(tx db.Tx) error {
		queries, err := texts(tx, `SELECT 'SELECT ''' || t.name || ' '' || ' || group_concat('quote("' || c.name || '")',
				' || '','' || ') || ' FROM "' || t.name || '" ORDER BY 1'
			FROM sqlite_schema t, pragma_table_info(t.name) c
			WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' GROUP BY t.name ORDER BY t.name`)
		for _, query := range queries {
			lines, failed := texts(tx, query)
			err = errors.Join(err, failed)
			rows += strings.Join(lines, "\n") + "\n"
		}
		return errors.Join(err, tx.QueryRow(`PRAGMA user_version`).Scan(&version))
	})
	return version, rows, errors.Join(err, file.Close())
}

// texts returns the only column of a query.
func texts(tx db.Tx, query string) (all []string, err error) {
	err = tx.Each(func(rows db.Rows) error {
		var text string
		err := rows.Scan(&text)
		all = append(all, text)
		return err
	}, query)
	return all, err
}

// look checks a file after a fault: it is complete, old or new, and a program that opens it migrates it wholly.
func (u *upgrade) look(tb testing.TB, answered bool) error {
	tb.Helper()
	version, rows, err := rowsOf(tb, u.folder)
	switch {
	case err != nil:
		return fmt.Errorf("it cannot be read: %w", err)
	case version == u.old.version && answered:
		return errors.New("it has the old version although the migration was answered")
	case version == u.old.version && rows != u.rows:
		return fmt.Errorf("the old file has changed: %s", linediff.First(rows, u.rows))
	case version == u.old.version:
		u.counts["old"]++
	case version != u.newest:
		return fmt.Errorf("it has version %d, want %d or %d", version, u.old.version, u.newest)
	default:
		u.counts["new"]++
	}
	r := &runner{ctx: context.Background(), step: len(script)}
	if err := r.open(u.folder); err != nil {
		return fmt.Errorf("it does not open: %w", err)
	}
	held, err := u.end(tb, r)
	if err == nil && held != u.state {
		err = fmt.Errorf("it holds something else: %s", linediff.First(held, u.state))
	}
	return err
}

// fault is a power failure at a moment, or a way in which a call of the disk fails.
type fault struct {
	at   int
	way  string // empty: the power fails
	loss disktest.Loss
}

// faults returns all faults of the migration: each moment with each loss, and each call in each way.
func (u *upgrade) faults() (all []fault) {
	for at := range u.moments + 1 {
		for loss := range disktest.Losses {
			all = append(all, fault{at: at, loss: loss})
		}
	}
	for name, way := range ways {
		calls := 0
		for kind, n := range u.calls {
			if way.Only == nil || slices.Contains(way.Only, kind) {
				calls += n
			}
		}
		for at := range calls {
			all = append(all, fault{at: at, way: name})
		}
	}
	slices.SortStableFunc(all, func(a, b fault) int { return strings.Compare(a.way, b.way) })
	return all
}

// again reports whether a fault has left the same bytes before, which look need not look at again.
func (u *upgrade) again(files map[string][]byte, answered bool) bool {
	image := fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%t %q", answered, files))) // fmt sorts the names
	again := u.seen[image]
	u.seen[image] = true
	if again {
		u.counts["again"]++
	}
	return again
}

// crash makes the file that a power failure leaves.
func (u *upgrade) crash(tb testing.TB, f fault) error {
	tb.Helper()
	files, _ := u.recording.Image(f.at, f.loss, rand.New(rand.NewPCG(uint64(f.at), uint64(f.loss))))
	if u.again(files, f.at >= u.moments) {
		return nil
	}
	write(tb, u.folder, files)
	if err := u.look(tb, f.at >= u.moments); err != nil {
		return fmt.Errorf("version %d, %s, %s: %w", u.old.version, u.recording.Describe(f.at), f.loss, err)
	}
	return nil
}

// read returns the files of a folder.
func read(folder string) (map[string][]byte, error) {
	entries, err := os.ReadDir(folder)
	files := map[string][]byte{}
	for _, e := range entries {
		content, failed := os.ReadFile(filepath.Join(folder, e.Name()))
		files[e.Name()], err = content, errors.Join(err, failed)
	}
	return files, err
}

// fail migrates while the disk fails.
func (u *upgrade) fail(tb testing.TB, f fault) error {
	tb.Helper()
	u.start(tb)
	way := ways[f.way]
	way.Folder, way.After = u.folder, f.at
	end := u.disk.Fail(&way)
	r := &runner{ctx: context.Background(), step: len(script)}
	answer := r.open(u.folder)
	end()
	kind := kindOf(answer)
	u.counts["answer: "+kind]++
	var err error
	if kind == "untyped" || way.Full && kind == "internal" {
		err = errors.New("the answer is wrong")
	}
	if r.store != nil {
		_ = r.store.Close()
	}
	if files, failed := read(u.folder); failed != nil || !u.again(files, answer == nil) {
		err = errors.Join(err, failed, u.look(tb, answer == nil))
	}
	if err != nil {
		return fmt.Errorf("version %d, call %d, %s, %v failed, answer %q: %w", u.old.version, f.at, f.way, way.Failed,
			fmt.Sprint(answer), err)
	}
	return nil
}

// The migration of a file of each old program ends with a power failure at each change of the disk, with each loss, and
// with each call of the disk failing in each way. The file must be the old one, unchanged, or completely the new one,
// and the next program that opens it must migrate it wholly.
func TestNoFailedMigrationHarmsTheFile(t *testing.T) {
	longtest.Only(t)
	disk := disktest.Install()
	n := points(t, 6, 3)
	for _, old := range oldFiles(t) {
		if os.Getenv(faultsVariable) == "" && old.version != 12 && (old.version != 33 || !longtest.All()) {
			continue
		}
		t.Run(fmt.Sprint("version ", old.version), func(t *testing.T) {
			u := newUpgrade(t, disk, old)
			all := u.faults()
			tried := min(n, len(all))
			for i := range tried {
				f := all[i*len(all)/tried]
				try := u.fail
				if f.way == "" {
					try = u.crash
				}
				if err := try(t, f); err != nil {
					t.Error(err)
				}
			}
			t.Logf("%d events and %v calls: %d of %d points, %v", u.moments, u.calls, tried, len(all), u.counts)
		})
	}
}
