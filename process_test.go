package souvenir

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/longtest"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// Several processes on one file. The test binary starts itself again, with a job in the environment.

const jobVariable = "SOUVENIR_TEST_JOB"

// job is what another process does: it opens the file, prints "open", does its work, prints one line for each thing
// that was answered, and ends when its standard input does.
type job struct {
	Path, Work, Name, Model string
	Count                   int
}

func TestMain(m *testing.M) {
	if encoded := os.Getenv(jobVariable); encoded != "" {
		if err := runJob(encoded); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(longtest.MainWithCheapPasswords(m))
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
		err = upkeepWithoutEnd(ctx, s)
	case "backup": // both wait after the first step
		err = s.Upkeep().Backup(ctx, j.Name, &BackupOptions{Progress: waitForEver})
	case "restore":
		err = Restore(ctx, Restoration{From: j.Model, To: j.Name, Progress: waitForEver})
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

// addInBatches prints a line per batch: its number and its size.
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

// addOnDemand stores each line of its input and prints the new memory's id.
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

// process is another process at its job.
type process struct {
	tb    testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	err   strings.Builder
}

func startProcess(tb testing.TB, j job) *process {
	tb.Helper()
	if j.Model == "" {
		j.Model = "words-1"
	}
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
	tb.Cleanup(func() { _ = p.cmd.Process.Kill() }) // when the test failed before its end
	if line := p.line(); line != "open" {
		tb.Fatalf(`the process says %q, not that the store is open, want "open"`, line)
	}
	return p
}

// line is the next one that the process prints.
func (p *process) line() string {
	p.tb.Helper()
	if !p.lines.Scan() {
		_ = p.cmd.Wait()
		p.tb.Fatalf("the process ended: %s, want another line", p.err.String())
	}
	return p.lines.Text()
}

// rest are all further lines, until the process has ended.
func (p *process) rest() (lines []string, err error) {
	for p.lines.Scan() {
		lines = append(lines, p.lines.Text())
	}
	if err := p.cmd.Wait(); err != nil {
		return lines, fmt.Errorf("%w: %s", err, p.err.String())
	}
	return lines, nil
}

// idsOf returns the ids of all memories, and their contents.
func idsOf(tb testing.TB, s *Store) map[string]string {
	tb.Helper()
	all := map[string]string{}
	for m, err := range s.Memories(context.Background(), List{}) {
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

func TestProcessesWritingAtOnceLoseNothing(t *testing.T) {
	path, each := filepath.Join(t.TempDir(), "many.db"), 500
	if !longtest.All() {
		each = 20
	}
	var all []*process
	for i := range 4 { // the file does not exist yet: they race to make it, too
		all = append(all, startProcess(t, job{Path: path, Work: "one by one", Name: fmt.Sprint("writer", i), Count: each}))
	}
	var answered []string
	for _, p := range all {
		lines, err := p.rest()
		if err != nil {
			t.Error(err)
		}
		answered = append(answered, lines...)
	}
	s := openWords(t, path, Options{})
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
	rounds := 3
	if !longtest.All() {
		rounds = 1
	}
	for _, work := range []string{"one by one", "in batches"} {
		t.Run(work, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "killed.db")
			answered := 0
			batches := map[string]bool{}
			for round := range rounds {
				p := startProcess(t, job{Path: path, Work: work, Name: fmt.Sprint("round", round), Count: 1_000_000})
				for range 5 + 3*round { // then it is in the midst of the next
					line := p.line()
					answered++
					batches["b"+line] = true
				}
				if err := p.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				more, err := p.rest() // what it had printed and we had not read
				if err == nil {
					t.Fatal("the process ended by itself, want an error")
				}
				answered += len(more)
				for _, line := range more {
					batches["b"+line] = true
				}

				s, err := Open(t.Context(), path, &Options{Embedder: wordEmbedder("words-1")})
				if err != nil {
					t.Fatal("after a kill:", err)
				}
				checkConsistency(t, s)
				stored := len(idsOf(t, s))
				if work == "one by one" {
					if stored < answered || stored > answered+1 {
						t.Errorf("%d were answered, %d are stored, want stored at least %v and stored at most %v", answered, stored,
							answered, answered+1)
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
	path := filepath.Join(t.TempDir(), "two.db")
	for name, memory := range map[string]int64{"in memory": 0, "on disk": -1} {
		t.Run(name, func(t *testing.T) {
			s := openWords(t, path, Options{IndexMemory: memory})
			p := startProcess(t, job{Path: path, Work: "on demand"})
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
					if err := s.DeleteMemory(t.Context(), id); err != nil {
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
	path := filepath.Join(t.TempDir(), "models.db")
	ours := openWords(t, path, Options{Embedder: wordEmbedder("ours")})
	mustAdd(t, ours, NewMemory{Content: "stored by us before"})
	p := startProcess(t, job{Path: path, Work: "on demand", Model: "theirs"})
	fmt.Fprintln(p.in, "stored by them meanwhile")
	theirs := p.line()

	// The file changes to the model of who came last. We go on, by words, and say so.
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

	back := openWords(t, path, Options{Embedder: wordEmbedder("ours")})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := back.Upkeep().WaitEmbedded(ctx); err != nil {
		t.Fatal(err)
	}
	checkConsistency(t, back)
	found, err = back.Search(t.Context(), Query{Text: "stored by them meanwhile", Limit: 1})
	if err != nil || len(found.Hits) != 1 || found.Hits[0].ID != theirs || found.Hits[0].Parts.Vector < 0.99 ||
		len(found.Warnings) != 0 {
		t.Errorf("after the change back: %+v, %v", found, err)
	}
}

// checkConsistency looks at the file as it is and sees that everything in it agrees.
func checkConsistency(tb testing.TB, s *Store) {
	tb.Helper()
	over := errors.New("nothing of this is kept")
	err := s.db.Write(context.Background(), func(tx db.Tx) error { // it makes a temporary table, and takes it back
		if err := wrongRows(tb, tx); err != nil {
			return err
		}
		if err := wrongTerms(tb, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO passage_text (passage_text) VALUES ('integrity-check')`); err != nil {
			tb.Errorf("full text: %v", err)
		}
		return over
	})
	if !errors.Is(err, over) {
		tb.Errorf("checking the file: %v, want %v", err, over)
	}
}

// wrongRows runs queries whose answers are what is wrong.
func wrongRows(tb testing.TB, tx db.Tx) error {
	tb.Helper()
	for _, c := range []struct{ promise, query string }{
		{"SQLite finds no damage", `SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'`},
		{"references lead somewhere", `SELECT "table" || ' ' || rowid FROM pragma_foreign_key_check`},
		{"each memory has a passage, unless it is blank",
			`SELECT uid FROM memory WHERE id NOT IN (SELECT memory_id FROM passage) ` +
				`AND trim(content, char(9, 10, 13, 32)) <> ''`},
		{"each passage has its row in full text", `SELECT id FROM passage WHERE id NOT IN (SELECT rowid FROM passage_text)`},
		{"each row in full text has its passage",
			`SELECT rowid FROM passage_text WHERE rowid NOT IN (SELECT id FROM passage)`},
		{"passages are in their memory's partition",
			`SELECT p.id FROM passage p JOIN memory m ON m.id = p.memory_id WHERE p.id >> 32 <> m.partition_id`},
		{"passages lie within the content", `SELECT p.id FROM passage p JOIN memory m ON m.id = p.memory_id
			WHERE p.start < 0 OR p.length < 0 OR p.start + p.length > length(CAST(m.content AS BLOB))`},
		{"a partition counts its memories",
			`SELECT id || ': ' || memories FROM partition p WHERE memories <> (SELECT count(*) FROM memory ` +
				`WHERE partition_id = p.id)`},
		{"a partition counts its passages",
			`SELECT id || ': ' || passages FROM partition p WHERE passages <> (SELECT count(*) FROM passage ` +
				`WHERE id >> 32 = p.id)`},
		{"a partition counts its past versions",
			`SELECT id || ': ' || revisions FROM partition p WHERE revisions <> (SELECT count(*) FROM memory_revision ` +
				`WHERE partition_id = p.id)`},
		{"a partition counts its bytes", `SELECT id || ': ' || bytes FROM partition p WHERE bytes <>
			(SELECT ifnull(sum(octet_length(content) + octet_length(metadata)), 0) FROM memory WHERE partition_id = p.id)
			+ (SELECT ifnull(sum(octet_length(content) + octet_length(attributes)), 0) FROM memory_revision
			WHERE partition_id = p.id)`},
		{"ids of passages are not given twice",
			`SELECT p.id FROM passage p JOIN partition a ON a.id = p.id >> 32 WHERE p.id & 0xffffffff >= a.next_passage`},
		{"vectors have their profile's size",
			`SELECT p.id FROM passage p LEFT JOIN profile f ON f.id = p.profile_id WHERE p.vector IS NOT NULL ` +
				`AND (f.id IS NULL OR length(p.vector) NOT IN (4 * f.dimensions, 1 + 2 * f.dimensions))`},
		{"tags are numbered without gaps",
			`SELECT memory_id FROM memory_tag GROUP BY memory_id HAVING count(*) <> max(position) + 1 OR min(position) <> 0`},
		{"revisions are kept without gaps",
			`SELECT uid FROM memory m WHERE revision <> 1 + (SELECT count(*) FROM memory_revision WHERE memory_id = m.id)
			OR revision <= (SELECT max(revision) FROM memory_revision WHERE memory_id = m.id)`},
		{"each memory is in the log of changes",
			`SELECT uid FROM memory WHERE ifnull((SELECT max(seq) FROM change), 0) <= 65536 AND id NOT IN (SELECT memory_id ` +
				`FROM change)`},
		{"no collection has two partitions of a project",
			`SELECT collection_id FROM partition GROUP BY collection_id, ifnull(project_id, 0) HAVING count(*) > 1`},
		{"what is in a project is stored with its owner",
			`SELECT p.id FROM partition p JOIN collection c ON c.id = p.collection_id JOIN project j ON j.id = p.project_id ` +
				`WHERE c.owner_id <> j.owner_id`},
		{"files in a project are its owner's",
			`SELECT f.uid FROM file f LEFT JOIN memory m ON m.id = f.memory_id LEFT JOIN partition p ON p.id = m.partition_id
			JOIN project j ON j.id = iif(m.id IS NULL, f.project_id, p.project_id) WHERE f.state = 'stored'
			AND f.owner_id <> j.owner_id`},
		{"metadata is an object", `SELECT uid FROM memory WHERE json_type(metadata) <> 'object'`},
	} {
		found, err := db.Column[string](tx, c.query)
		if err != nil {
			return fmt.Errorf("%s: %w", c.promise, err)
		}
		if len(found) > 0 {
			tb.Errorf("it does not hold that %s: %d times, first %s, want found empty", c.promise, len(found), found[0])
		}
	}
	return nil
}

// wrongTerms compares what full text holds with what the contents and tags say.
func wrongTerms(tb testing.TB, tx db.Tx) error {
	tb.Helper()
	if _, err := tx.Exec(`CREATE VIRTUAL TABLE temp.held USING fts5vocab('main', 'passage_text', ` +
		`'instance')`); err != nil {
		return err
	}
	held := map[string]string{}
	err := tx.Each(func(row db.Rows) error {
		var doc int64
		var column, terms string
		err := row.Scan(&doc, &column, &terms)
		held[fmt.Sprint(doc, column)] = terms
		return err
	}, `SELECT doc, col, group_concat(term, ' ' ORDER BY offset) FROM temp.held GROUP BY doc, col`)
	if err != nil {
		return err
	}
	previous := int64(0)
	wrong := 0
	err = tx.Each(func(row db.Rows) error {
		var id, memory int64
		var start, length int
		var content, tags string
		if err := row.Scan(&id, &memory, &start, &length, &content, &tags); err != nil {
			return err
		}
		if memory == previous {
			tags = "" // they stand with the first passage only
		}
		previous = memory
		want, wantTags := text.Indexed(content[start:start+length]), text.Indexed(tags)
		got, gotTags := held[fmt.Sprint(id, "content")], held[fmt.Sprint(id, "tags")]
		if want != got || wantTags != gotTags {
			wrong++
			if wrong == 1 {
				tb.Errorf("passage %d: full text holds %s and %s, its words are %s and %s, got %v, want wrong other than 1", id,
					cut(got), cut(gotTags), cut(want), cut(wantTags), wrong)
			}
		}
		return nil
	}, `SELECT p.id, p.memory_id, p.start, p.length, m.content,
			ifnull((SELECT group_concat(tag, char(10) ORDER BY position) FROM memory_tag WHERE memory_id = m.id), '')
		FROM passage p JOIN memory m ON m.id = p.memory_id ORDER BY p.memory_id, p.id`)
	if wrong > 1 {
		tb.Errorf("so it is with %d passages, want at most 1", wrong)
	}
	return err
}

func cut(s string) string { return strconv.Quote(s[:min(len(s), 200)]) }

// deaf is a test that only hears whether it failed.
type deaf struct {
	testing.TB
	failed bool
}

func (d *deaf) Helper()               {}
func (d *deaf) Error(...any)          { d.failed = true }
func (d *deaf) Errorf(string, ...any) { d.failed = true }

func TestConsistencyCheckFindsDamage(t *testing.T) {
	for i, damage := range []string{
		``,
		`DELETE FROM passage`,
		`DELETE FROM passage_text WHERE rowid = (SELECT min(id) FROM passage)`,
		`INSERT INTO passage_text (rowid, content, tags) VALUES (7, 'x', '')`,
		`UPDATE passage SET start = start + 3`,
		`UPDATE passage SET vector = x'00'`,
		`UPDATE partition SET memories = memories + 1`,
		`UPDATE partition SET passages = passages - 1`,
		`UPDATE partition SET next_passage = 0`,
		`UPDATE memory_tag SET position = position + 1`,
		`UPDATE memory SET revision = 9`,
		`UPDATE memory SET metadata = '[]'`,
		`DELETE FROM change`,
	} {
		if !longtest.Part(i, 1, 4) {
			continue
		}
		s := openWords(t, "", Options{})
		mustAdd(t, s, NewMemory{Content: "one memory", Tags: []string{"tagged"}})
		if damage != "" {
			if err := s.db.Write(t.Context(), func(tx db.Tx) error { _, err := tx.Exec(damage); return err }); err != nil {
				t.Fatal(err)
			}
		}
		d := &deaf{TB: t}
		checkConsistency(d, s)
		if d.failed != (damage != "") {
			t.Errorf("after %q the check fails: %v, want %v", damage, d.failed, (damage != ""))
		}
	}
}
