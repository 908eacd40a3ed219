package systemtest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/sqlite/consistent"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// Several processes on one file. The test binary starts itself again with a job in its environment.

const jobVariable = "SOUVENIR_TEST_JOB"

// job is the work of another process. It opens the file, prints "open", works, prints a line for each answer, and ends
// when its standard input does.
type job struct {
	Path, Work, Name, From, Model string
	Count                         int
}

func runJob(encoded string) error {
	var j job
	if err := json.Unmarshal([]byte(encoded), &j); err != nil {
		return err
	}
	ctx := context.Background()
	s, err := Open(ctx, j.Path, &Options{Embedder: wordEmbedder(j.Model)})
	if err != nil {
		return err
	}
	fmt.Println("open")
	switch j.Work {
	case "one by one":
		err = addOneByOne(ctx, s, j)
	case "in batches":
		err = addInBatches(ctx, s, j)
	case "on demand":
		err = addOnDemand(ctx, s)
	case "exchange codes":
		err = exchangeOnDemand(ctx, s)
	case "accept invitations":
		err = acceptOnDemand(ctx, s)
	case "store a file without end":
		err = storeWithoutEnd(ctx, s)
	case "upkeep without end":
		err = upkeepWithoutEnd(ctx, s, j.Path)
	case "backup": // both wait after the first step
		err = s.Upkeep().Backup(ctx, j.Name, &BackupOptions{Progress: waitForEver})
	case "restore":
		err = Restore(ctx, Restoration{From: j.From, To: j.Name, Progress: waitForEver})
	default:
		err = fmt.Errorf("unknown work %q", j.Work)
	}
	return errors.Join(err, s.Close())
}

func waitForEver(stage string, done, total int) {
	if stage == "copy" && done < total {
		fmt.Println(stage)
		select {}
	}
}

func addOneByOne(ctx context.Context, s *Store, j job) error {
	for i := range j.Count {
		content := fmt.Sprintf("%s writes number n%d of many", j.Name, i)
		m, err := s.AddMemory(ctx, NewMemory{Content: content, Tags: []string{j.Name, fmt.Sprint("t", i%7)},
			ProjectName: fmt.Sprint("p", i%3)})
		if err != nil {
			return err
		}
		fmt.Println(m.ID)
		if i%10 != 0 {
			continue
		}
		found, err := s.Search(ctx, Query{Text: content, Limit: 3, Tags: []string{j.Name}})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(found.Hits, func(h Hit) bool { return h.ID == m.ID }) {
			return fmt.Errorf("%s does not find its memory %d", j.Name, i)
		}
	}
	return nil
}

// addInBatches prints the number and the size of each batch.
func addInBatches(ctx context.Context, s *Store, j job) error {
	for i := range j.Count {
		many := make([]NewMemory, 40)
		for k := range many {
			many[k] = NewMemory{Content: fmt.Sprintf("batch b%d holds number %d. %s", i, k,
				strings.Repeat("More is said of it here. ", 2*k)), Tags: []string{fmt.Sprint("b", i)}}
		}
		if _, err := s.AddMemories(ctx, many, nil); err != nil {
			return err
		}
		fmt.Println(i)
	}
	return nil
}

// addOnDemand adds each line of its input and prints the memory's id.
func addOnDemand(ctx context.Context, s *Store) error {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		m, err := s.AddMemory(ctx, NewMemory{Content: lines.Text()})
		if err != nil {
			return err
		}
		fmt.Println(m.ID)
	}
	return nil
}

// process is another process with a job.
type process struct {
	tb    testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	err   strings.Builder
}

func startProcess(tb testing.TB, j job) *process {
	tb.Helper()
	j.Model = cmp.Or(j.Model, "words-1")
	encoded, err := json.Marshal(j)
	if err != nil {
		tb.Fatal(err)
	}
	p := &process{tb: tb, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), jobVariable+"="+string(encoded))
	p.cmd.Stderr = &p.err
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.cmd.Process.Kill() }) // for tests that fail early
	if line := p.line(); line != "open" {
		tb.Fatalf(`the process says %q, not that the store is open, want "open"`, line)
	}
	return p
}

// line returns the next line that the process prints.
func (p *process) line() string {
	p.tb.Helper()
	if !p.lines.Scan() {
		_ = p.cmd.Wait()
		p.tb.Fatalf("the process ended: %s, want another line", p.err.String())
	}
	return p.lines.Text()
}

// rest returns all further lines, once the process has ended.
func (p *process) rest() (lines []string, err error) {
	for p.lines.Scan() {
		lines = append(lines, p.lines.Text())
	}
	if err := p.cmd.Wait(); err != nil {
		return lines, fmt.Errorf("%w: %s", err, p.err.String())
	}
	return lines, nil
}

// idsOf returns the contents of all memories by id.
func idsOf(tb testing.TB, s *Store) map[string]string {
	tb.Helper()
	all := map[string]string{}
	for m, err := range s.Memories(context.Background(), MemoryList{}) {
		if err != nil {
			tb.Fatal(err)
		}
		if _, twice := all[m.ID]; twice {
			tb.Fatalf("memory %s is listed twice, want it once", m.ID)
		}
		all[m.ID] = m.Content
	}
	return all
}

// checkConsistency fails the test unless everything in the file agrees.
func checkConsistency(tb testing.TB, s *Store) {
	tb.Helper()
	beside, err := besideOf(tb, s).engine(false)
	if err != nil {
		tb.Fatal(err)
	}
	consistent.Check(tb, beside)
	if err := beside.Close(); err != nil {
		tb.Error(err)
	}
}

func TestProcessesWritingAtOnceLoseNothing(t *testing.T) {
	in, each := file{filepath.Join(t.TempDir(), "many.db")}, 200
	if !longtest.All() {
		each = 20
	}
	var all []*process
	for i := range 4 { // the file does not exist yet, so they also race to create it
		all = append(all, startProcess(t, job{Path: in.path, Work: "one by one", Name: fmt.Sprint("writer", i), Count: each}))
	}
	var answered []string
	for _, p := range all {
		lines, err := p.rest()
		if err != nil {
			t.Error(err)
		}
		answered = append(answered, lines...)
	}
	s := openWords(t, in, Options{})
	stored := idsOf(t, s)
	if len(answered) != 4*each || len(stored) != len(answered) {
		t.Errorf("%d of %d were answered and %d are stored, want all", len(answered), 4*each, len(stored))
	}
	contents := map[string]bool{}
	for _, id := range answered {
		content, ok := stored[id]
		if !ok {
			t.Errorf("memory %s was answered and is not there, want it stored", id)
		}
		if contents[content] {
			t.Errorf("stored twice: %s", content)
		}
		contents[content] = true
	}
	checkConsistency(t, s)
}

func TestKilledProcessLeavesWholeMemoriesOnly(t *testing.T) {
	rounds := 2
	if !longtest.All() {
		rounds = 1
	}
	for _, work := range []string{"one by one", "in batches"} {
		t.Run(work, func(t *testing.T) {
			in := file{filepath.Join(t.TempDir(), "killed.db")}
			answered := 0
			batches := map[string]bool{}
			for round := range rounds {
				p := startProcess(t, job{Path: in.path, Work: work, Name: fmt.Sprint("round", round), Count: 1_000_000})
				for range 5 + 3*round { // then it is in the middle of the next one
					line := p.line()
					answered++
					batches["b"+line] = true
				}
				if err := p.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				more, err := p.rest() // lines that were printed but not yet read
				if err == nil {
					t.Fatal("the process ended by itself, want an error")
				}
				answered += len(more)
				for _, line := range more {
					batches["b"+line] = true
				}

				s := openWords(t, in, Options{})
				checkConsistency(t, s)
				stored := len(idsOf(t, s))
				if work == "one by one" {
					if stored < answered || stored > answered+1 {
						t.Errorf("%d are stored, want the %d that were answered, or one more", stored, answered)
					}
					answered = stored
				} else {
					tags, err := s.Insights().Tags(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					for _, tag := range tags {
						if tag.Count%40 != 0 {
							t.Errorf("of batch %s %d memories are stored, not all 40: got %v, want 0", tag.Name, tag.Count, tag.Count%40)
						}
						delete(batches, tag.Name)
					}
					if len(batches) > 0 {
						t.Errorf("these batches were answered and are not there: %v, want no batches", batches)
					}
				}
				if _, err := s.AddMemory(t.Context(), NewMemory{Content: "after the kill"}); err != nil {
					t.Error(err)
				}
				answered++
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestNextSearchSeesAnotherProcessesWrite(t *testing.T) {
	in := file{filepath.Join(t.TempDir(), "two.db")}
	for name, memory := range map[string]int64{"in memory": 0, "on disk": -1} {
		t.Run(name, func(t *testing.T) {
			s := openWords(t, in, Options{IndexMemory: memory})
			p := startProcess(t, job{Path: in.path, Work: "on demand"})
			for i := range longtest.Size(20, 6) {
				content := fmt.Sprintf("%s: the parcel q%d has arrived", name, i)
				fmt.Fprintln(p.in, content)
				id := p.line()
				found, err := s.Search(t.Context(), Query{Text: content, Limit: 1})
				if err != nil {
					t.Fatal(err)
				}
				if len(found.Hits) != 1 || found.Hits[0].ID != id || found.Hits[0].Parts.Vector < 0.99 {
					t.Fatalf("write %d is not found by the next search: %+v, want 1 hit, ID %v and vector at least 0.99", i,
						found.Hits, id)
				}
				if i%5 == 4 {
					if err := s.DeleteMemory(t.Context(), id, nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			p.in.Close()
			if _, err := p.rest(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestProcessesWithDifferentEmbeddersShareAFile(t *testing.T) {
	in := file{filepath.Join(t.TempDir(), "models.db")}
	ours := openWords(t, in, Options{Embedder: wordEmbedder("ours")})
	mustAdd(t, ours, NewMemory{Content: "stored by us before"})
	p := startProcess(t, job{Path: in.path, Work: "on demand", Model: "theirs"})
	fmt.Fprintln(p.in, "stored by them meanwhile")
	theirs := p.line()

	// The file changes to the model of the last opener. The first one continues without vectors, and says so.
	mine := mustAdd(t, ours, NewMemory{Content: "stored by us meanwhile"})
	if mine.Indexed {
		t.Error("a vector of ours counts as searchable in a file that has changed to another model, want it not " +
			"searchable")
	}
	found, err := ours.Search(t.Context(), Query{Text: "meanwhile"})
	if err != nil || len(found.Hits) != 2 {
		t.Fatalf("found %v, %v; want a length of 2", found.Hits, err)
	}
	if len(found.Warnings) == 0 {
		t.Errorf("a search by words only does not say so: got %v, want some warnings", len(found.Warnings))
	}
	for _, h := range found.Hits {
		if h.Parts.Vector != 0 {
			t.Errorf("a vector of another model was compared: %+v; want vector 0", h)
		}
	}
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	p.in.Close()
	if _, err := p.rest(); err != nil {
		t.Error(err)
	}

	back := openWords(t, in, Options{Embedder: wordEmbedder("ours")})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := back.Upkeep().WaitEmbedded(ctx); err != nil {
		t.Fatal(err)
	}
	checkConsistency(t, back)
	found, err = back.Search(t.Context(), Query{Text: "stored by them meanwhile", Limit: 1})
	if err != nil || len(found.Hits) != 1 || found.Hits[0].ID != theirs || found.Hits[0].Parts.Vector < 0.99 ||
		len(found.Warnings) != 0 {
		t.Errorf("after the change back: %+v, %v, want their memory alone, by its vector", found, err)
	}
}
