//go:build linux && !souvenir_cgo

package faulttest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/sqlite/disktest"
	"github.com/souvenir-ai/souvenir/internal/storefile"
)

// first holds the migrations up to a number.
type first struct {
	fs.FS
	version int
}

func (f first) Glob(pattern string) ([]string, error) {
	all, err := fs.Glob(f.FS, pattern)
	if strings.HasPrefix(pattern, "schema/") {
		return nil, err
	}
	return all[:f.version], err
}

// oldVersion predates hashes, so the migrations have much to write.
const oldVersion = 11

// makeOld makes a file of the old version, with memories.
func makeOld(tb testing.TB, folder string) {
	tb.Helper()
	write(tb, folder, nil)
	file, err := sqlite.Open(tb.Context(), sqlite.Config{Path: filepath.Join(folder, storeName),
		ApplicationID: storefile.ApplicationID, Migrations: first{sqlite.Migrations(), oldVersion}})
	if err != nil {
		tb.Fatal(err)
	}
	err = file.Write(tb.Context(), func(tx db.Tx) error {
		return tx.(*sqlite.Tx).ExecScript(`INSERT INTO user (id, uid, created_at) VALUES (1, 'local', 1);
			INSERT INTO collection (id, owner_id, name, description, created_at, updated_at) VALUES (1, 1, 'default', '', 1, 1);
			INSERT INTO partition (id, collection_id) VALUES (1, 1);
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
			INSERT INTO memory (uid, partition_id, content, metadata, revision, created_at, updated_at)
			SELECT 'm' || i, 1, 'memory ' || i || ' of the kettle', '{"n":' || i || '}', 1, i, i FROM n`)
	})
	if err := errors.Join(err, file.Close()); err != nil {
		tb.Fatal(err)
	}
}

// versionOf returns the version of a file's schema and the number of its memories.
func versionOf(tb testing.TB, folder string) (version, memories int, err error) {
	tb.Helper()
	file, err := sqlite.Open(tb.Context(), sqlite.Config{Path: filepath.Join(folder, storeName),
		ApplicationID: storefile.ApplicationID, Migrations: sqlite.Migrations(), ReadOnly: true, AnyVersion: true})
	if err != nil {
		return 0, 0, err
	}
	err = file.Read(tb.Context(), func(tx db.Tx) error {
		return errors.Join(tx.QueryRow(`PRAGMA user_version`).Scan(&version),
			tx.QueryRow(`SELECT count(*) FROM memory WHERE content LIKE 'memory %'`).Scan(&memories))
	})
	return version, memories, errors.Join(err, file.Close())
}

// upgraded opens a file with the current program, and checks that it holds what the old file held.
func upgraded(tb testing.TB, folder string) error {
	tb.Helper()
	r := &runner{ctx: context.Background()}
	if err := r.open(folder); err != nil {
		return err
	}
	defer r.store.Close()
	if _, err := r.store.Upkeep().Check(r.ctx, &CheckOptions{Repair: true}); err != nil { // the old file had no passages
		return err
	}
	report, err := r.store.Upkeep().Check(r.ctx, nil)
	if err != nil {
		return err
	}
	n := 0
	for _, err := range r.store.Memories(r.ctx, MemoryList{}) {
		if err != nil {
			return err
		}
		n++
	}
	if !report.OK || n != 40 {
		return errors.New("it is not whole after the upgrade")
	}
	return nil
}

// A migration that fails or is killed leaves a complete file of the old or the new version.
func TestNoFailedMigrationHarmsTheFile(t *testing.T) {
	disk := disktest.Install()
	folder := filepath.Join(t.TempDir(), "old")
	makeOld(t, folder)
	recording, end, err := disk.Record(folder)
	if err != nil {
		t.Fatal(err)
	}
	before := disktest.Fault{Folder: folder, After: 1 << 30}
	stop := disk.Fail(&before)
	r := &runner{ctx: t.Context()}
	if err := r.open(folder); err != nil {
		t.Fatal(err)
	}
	moment := disk.Now()
	stop()
	end()
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, n := range before.Seen {
		calls += n
	}

	last := 0
	n := points(t, 100, 4) / 2
	versions := map[string]int{}
	look := func(what string) {
		version, memories, err := versionOf(t, folder)
		switch {
		case err != nil:
			t.Errorf("%s: %v", what, err)
		case memories != 40 || version != oldVersion && version != last && last != 0:
			t.Errorf("%s: version %d with %d memories, want 40", what, version, memories)
		case version == oldVersion:
			versions["old"]++
		default:
			versions["new"]++
			last = version
		}
		if err := upgraded(t, folder); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range n { // the power fails
		at, loss := i*(moment+1)/n, disktest.Loss(i%int(disktest.Losses))
		files, _ := recording.Image(at, loss, rand.New(rand.NewPCG(uint64(i), 1)))
		write(t, folder, files)
		look(recording.Describe(at) + ", " + loss.String())
	}
	for i := range n { // the disk fails
		makeOld(t, folder)
		way := disktest.Fault{Folder: folder, After: i * calls / n, Calls: i % 2, Full: i%3 == 0}
		stop := disk.Fail(&way)
		r := &runner{ctx: t.Context()}
		err := r.open(folder)
		stop()
		kind := kindOf(err)
		versions["answer: "+kind]++
		if kind == "untyped" {
			t.Errorf("%v failed: the error has no kind: %v", way.Failed, err)
		}
		if r.store != nil {
			_ = r.store.Close()
		}
		look(fmt.Sprint("answer ", err))
	}
	t.Logf("%d events and %d calls of the disk; %d crashes and %d failures: %v", moment, calls, n, n, versions)
}
