//go:build linux && !souvenir_cgo

package faulttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/sqlite/disktest"
	"github.com/souvenir-ai/souvenir/internal/testing/linediff"
)

// recorded is a recording of the script on a healthy disk.
type recorded struct {
	*disktest.Recording
	begun  []int    // when each step began
	ended  []int    // when each step returned
	states []string // before the first step, and after each
}

// scripts are the recordings so far, by keys.
var scripts = map[any]recorded{}

// recordScript runs the script once for all tests with the same keys.
func recordScript(tb testing.TB, disk *disktest.Disk) recorded {
	tb.Helper()
	if all, ok := scripts[keys]; ok {
		return all
	}
	folder := tb.TempDir()
	recording, end, err := disk.Record(folder)
	if err != nil {
		tb.Fatal(err)
	}
	r := &runner{ctx: tb.Context()}
	if err := r.open(folder); err != nil {
		tb.Fatal(err)
	}
	all := recorded{Recording: recording}
	note := func() {
		held, err := state(tb, r.store)
		if err != nil {
			tb.Fatal(err)
		}
		all.states = append(all.states, held)
	}
	note()
	for i, s := range script {
		r.step, r.ids = i, 0
		all.begun = append(all.begun, disk.Now())
		if err := s.do(r); err != nil {
			tb.Fatalf("step %d, %s: %v", i, s.name, err)
		}
		all.ended = append(all.ended, disk.Now())
		note()
	}
	if err := r.store.Close(); err != nil {
		tb.Fatal(err)
	}
	end()
	scripts[keys] = all
	return all
}

// write writes the files of an image to a new folder.
func write(tb testing.TB, folder string, files map[string][]byte) {
	tb.Helper()
	if err := os.RemoveAll(folder); err != nil {
		tb.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		tb.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
}

// later is the content of a memory that is added after a fault.
const later = "stored after the fault"

// expectation is what a store may hold.
type expectation struct {
	states []string // one of these
	parts  bool     // or any state between them
	later  bool     // and the memory added later
}

func (e expectation) compare(held string) error {
	var lines []string
	found := false
	for line := range strings.Lines(held) {
		if strings.Contains(line, later) {
			found = true
		} else {
			lines = append(lines, line)
		}
	}
	held = strings.Join(lines, "")
	switch {
	case e.later && !found:
		return errors.New("what was stored after the fault is not there")
	case !e.parts && !slices.Contains(e.states, held):
		return fmt.Errorf("it holds none of %d states: %s", len(e.states), linediff.First(held, e.states[0]))
	}
	return nil
}

// sound opens the store of a folder, checks it, and compares its content with the expectation.
func sound(tb testing.TB, folder string, r *runner, e expectation) error {
	tb.Helper()
	if err := r.open(folder); err != nil {
		return fmt.Errorf("it does not open: %w", err)
	}
	defer r.store.Close()
	report, err := r.store.Upkeep().Check(r.ctx, nil)
	if err != nil || !report.OK {
		return fmt.Errorf("the check says %.1000v, %w", report.Findings, err)
	}
	held, err := state(tb, r.store)
	if err == nil {
		err = e.compare(held)
	}
	if err != nil {
		return err
	}
	if _, err := r.store.AddMemory(r.ctx, NewMemory{Content: "and now", ProjectName: "after"}); err != nil {
		return fmt.Errorf("nothing can be stored: %w", err)
	}
	return r.store.Close()
}

// The power fails at each moment of the script. Every answered step must be there, and an unanswered one must be there
// completely or not at all.
func TestNoCrashLosesWhatWasAnswered(t *testing.T) { crashes(t, points(t, 400, 3)) }

// The pages and frames of an encrypted store are torn and reordered, too.
func TestNoCrashLosesWhatAnEncryptedStoreAnswered(t *testing.T) {
	n := points(t, 100, 0)
	encrypted(t)
	crashes(t, n)
}

// So are those of the ring with the user keys, which is a file of its own.
func TestNoCrashLosesWhatAStoreWithUserKeysAnswered(t *testing.T) {
	n := points(t, 30, 0)
	sealed(t)
	crashes(t, n)
}

func crashes(t *testing.T, n int) {
	disk := disktest.Install()
	all := recordScript(t, disk)
	type point struct {
		at   int
		loss disktest.Loss
		seed uint64
	}
	work := make(chan point)
	var mu sync.Mutex
	counts := map[disktest.Loss]int{}
	idle := 0
	var wait sync.WaitGroup
	for w := range 2 {
		wait.Go(func() {
			folder := filepath.Join(t.TempDir(), fmt.Sprint(w))
			for p := range work {
				files, pending := all.Image(p.at, p.loss, rand.New(rand.NewPCG(p.seed, uint64(p.at))))
				answered := 0
				for answered < len(script) && all.ended[answered] <= p.at {
					answered++
				}
				parts := answered < len(script) && script[answered].parts && all.begun[answered] < p.at
				write(t, folder, files)
				r := &runner{ctx: context.Background(), step: len(script)}
				e := expectation{states: all.states[answered:min(answered+2, len(all.states))], parts: parts}
				if err := sound(t, folder, r, e); err != nil {
					t.Errorf("%s, in step %d, %d pending, %s, seed %d: %v", all.Describe(p.at), answered, pending, p.loss, p.seed,
						err)
				}
				mu.Lock()
				counts[p.loss]++
				if pending == 0 {
					idle++
				}
				mu.Unlock()
			}
		})
	}
	for i := range n {
		if i%1000 == 999 {
			t.Logf("%d of %d", i+1, n)
		}
		work <- point{at: i * (all.Events() + 1) / n, loss: disktest.Loss(i % int(disktest.Losses)), seed: uint64(i)}
	}
	close(work)
	wait.Wait()
	t.Logf("%d events of %d steps; %d crashes, %v; nothing was pending in %d", all.Events(), len(script), n, counts, idle)
}
