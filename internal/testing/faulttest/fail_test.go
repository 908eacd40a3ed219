//go:build linux && !souvenir_cgo

package faulttest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/sqlite/disktest"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// ways are the ways in which a call of the disk fails.
var ways = map[string]disktest.Fault{
	"an error, once":                {Calls: 1},
	"an error, from then on":        {},
	"half a write, then errors":     {Part: 0.5, Only: []disktest.Kind{disktest.Write, disktest.Sync, disktest.Truncate}},
	"half a write, once":            {Part: 0.5, Calls: 1, Only: []disktest.Kind{disktest.Write}},
	"a full disk, once":             {Full: true, Calls: 1, Only: []disktest.Kind{disktest.Write}},
	"a full disk, from then on":     {Full: true, Part: 0.3, Only: []disktest.Kind{disktest.Write}},
	"a sync that fails, once":       {Calls: 1, Only: []disktest.Kind{disktest.Sync}},
	"syncs that fail, from then on": {Only: []disktest.Kind{disktest.Sync}},
}

// kindsOfErrors are the kinds of errors that the package promises.
var kindsOfErrors = map[string]error{
	"full": ErrFull, "busy": ErrBusy, "internal": ErrInternal, "corrupt": ErrCorrupt, "read-only": ErrReadOnly,
	"outcome unknown": ErrOutcomeUnknown, "not found": ErrNotFound, "conflict": ErrConflict, "invalid": ErrInvalid,
	"closed": ErrClosed, "foreign": ErrForeign, "master key": ErrMasterKey, "newer": ErrNewer,
	"forbidden": ErrForbidden, "too large": ErrTooLarge, "user keys": ErrUserKeys,
}

func kindOf(err error) string {
	if err == nil {
		return "none"
	}
	for name, kind := range kindsOfErrors {
		if errors.Is(err, kind) {
			return name
		}
	}
	return "untyped"
}

// failing is one step of the script on a disk that fails.
type failing struct {
	disk   *disktest.Disk
	all    recorded
	folder string
	step   int
	counts map[string]int
}

// start creates the state before the step and opens the store.
func (f *failing) start(tb testing.TB) *runner {
	tb.Helper()
	files, _ := f.all.Image(f.all.begun[f.step], disktest.Kept, nil)
	write(tb, f.folder, files)
	r := &runner{ctx: context.Background(), step: f.step}
	if err := r.open(f.folder); err != nil {
		tb.Fatal(err)
	}
	if err := r.store.Upkeep().WaitEmbedded(r.ctx); err != nil {
		tb.Fatal(err)
	}
	return r
}

// calls counts the calls of the disk during the step, by kind.
func (f *failing) calls(tb testing.TB) map[disktest.Kind]int {
	tb.Helper()
	r := f.start(tb)
	way := disktest.Fault{Folder: f.folder, After: 1 << 30}
	end := f.disk.Fail(&way)
	err := script[f.step].do(r)
	end()
	if err := errors.Join(err, r.store.Close()); err != nil {
		tb.Fatalf("step %d, %s: %v", f.step, script[f.step].name, err)
	}
	seen := map[disktest.Kind]int{}
	for kind, n := range way.Seen {
		seen[disktest.Kind(kind)] = n
	}
	return seen
}

// try makes call n of the disk fail, and returns everything that is then wrong.
func (f *failing) try(tb testing.TB, way disktest.Fault, n int) (wrong error) {
	tb.Helper()
	s := script[f.step]
	r := f.start(tb)
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute) // a call that hangs fails with an error of no kind
	defer cancel()
	r.ctx = ctx
	recording, stop, err := f.disk.Record(f.folder)
	if err != nil {
		tb.Fatal(err)
	}
	defer stop()
	way.Folder, way.After = f.folder, n
	end := f.disk.Fail(&way)
	answer := s.do(r)
	end()
	kind := kindOf(answer)
	f.counts[kind]++
	if len(way.Failed) == 0 {
		f.counts["(not reached)"]++
	}
	report := func(what string, err error) {
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("%v failed, answer %q (%s): %s: %w", way.Failed, fmt.Sprint(answer),
				kind, what, err))
		}
	}
	if kind == "untyped" || errors.Is(answer, errHalf) || way.Full && kind == "internal" {
		report("the answer", errors.New("is wrong"))
	}
	e := expectation{states: f.all.states[f.step : f.step+2], parts: s.parts}
	switch {
	case answer == nil:
		e.states = e.states[1:]
	case kind != "outcome unknown": // the error says that nothing was done
		e.states = e.states[:1]
	}
	if r.isOpen() {
		held, err := state(tb, r.store)
		if err == nil {
			err = e.compare(held)
		}
		report("beside it", err)
		if f.step > 0 { // the disk works again, and must keep what is answered from now on
			r.step = len(script) + 1 // whose ids neither the failed step nor the final check uses
			_, err = r.store.AddMemory(r.ctx, NewMemory{Content: later})
			report("later", err)
			e.later = err == nil
		}
	}
	if n%2 == 0 { // a process exit, or else a power failure
		report("when it is closed", r.close())
	} else {
		random := rand.New(rand.NewPCG(uint64(n), uint64(f.step)))
		files, _ := recording.Image(recording.Events(), disktest.Loss(n/2%int(disktest.Losses)), random)
		_ = r.close()
		write(tb, f.folder, files)
	}
	report("afterwards", sound(tb, f.folder, &runner{ctx: r.ctx, step: len(script)}, e))
	return wrong
}

// Each call of the disk fails, in each way. The error must be one that the package promises, and the store must hold
// all that was answered and nothing half done.
func TestNoFailureOfTheDiskLosesWhatWasAnswered(t *testing.T) { failures(t, points(t, 200, 2)) }

func TestNoFailureOfTheDiskLosesWhatAnEncryptedStoreAnswered(t *testing.T) {
	n := points(t, 60, 0)
	encrypted(t)
	failures(t, n)
}

func TestNoFailureOfTheDiskLosesWhatAStoreWithUserKeysAnswered(t *testing.T) {
	n := points(t, 20, 0)
	sealed(t)
	failures(t, n)
}

func failures(t *testing.T, n int) {
	disk := disktest.Install()
	all := recordScript(t, disk)
	f := failing{disk: disk, all: all, folder: filepath.Join(t.TempDir(), "failing"), counts: map[string]int{}}
	type point struct {
		step, n int
		way     string
	}
	var every []point
	for i, s := range script {
		if s.random || os.Getenv(faultsVariable) == "" && !longtest.Part(i, 2, 8) {
			continue
		}
		f.step = i
		seen := f.calls(t)
		for _, name := range slices.Sorted(maps.Keys(ways)) {
			n := 0
			for kind, calls := range seen {
				if ways[name].Only == nil || slices.Contains(ways[name].Only, kind) {
					n += calls
				}
			}
			for at := range n {
				every = append(every, point{i, at, name})
			}
		}
	}
	n = min(n, len(every))
	clear(f.counts)
	began := time.Now()
	for i := range n {
		if i%1000 == 999 {
			t.Logf("%d of %d", i+1, n)
		}
		p := every[i*len(every)/n]
		f.step = p.step
		if err := f.try(t, ways[p.way], p.n); err != nil {
			t.Errorf("step %d, %s, call %d, %s:\n\t%s", p.step, script[p.step].name, p.n, p.way,
				strings.ReplaceAll(err.Error(), "\n", "\n\t"))
		}
	}
	t.Logf("%d of %d points in %v: %v", n, len(every), time.Since(began).Round(time.Second), f.counts)
}

// On a disk that stays full, erasing a memory returns an error, with or without past versions to delete first.
func TestErasingOnAFullDiskEnds(t *testing.T) {
	longtest.Only(t)
	disk := disktest.Install()
	all := recordScript(t, disk)
	f := failing{disk: disk, all: all, folder: filepath.Join(t.TempDir(), "failing"), counts: map[string]int{}}
	f.step = slices.IndexFunc(script, func(s step) bool { return s.name == "erase a memory" })
	way := ways["a full disk, from then on"]
	for n := range min(f.calls(t)[disktest.Write], longtest.Size(40, 1)) {
		if err := f.try(t, way, n); err != nil {
			t.Errorf("write %d: %v", n, err)
		}
	}
	if f.counts["full"] == 0 {
		t.Errorf("got %v, want some errors of a full disk", f.counts)
	}
}
