package souvenir_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/seed"
)

// These are the benchmarks of docs/benchmarks.md: go test -run '^$' -bench . -benchtime 3s

// sentences makes n different memories.
func sentences(n int) []souvenir.NewMemory { return seed.Sentences(2, n) }

func openBench(b *testing.B, memories int) *souvenir.Store {
	b.Helper()
	store, err := souvenir.Open(context.Background(), filepath.Join(b.TempDir(), "bench.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	if _, err := store.AddMemories(context.Background(), sentences(memories), nil); err != nil {
		b.Fatal(err)
	}
	return store
}

// loadIndex searches until the index in memory answers.
func loadIndex(b *testing.B, store *souvenir.Store) {
	b.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		found, err := store.Search(context.Background(), souvenir.Query{Text: "deploy", Explain: true})
		if err != nil || time.Since(began) > time.Minute {
			b.Fatalf("got plan %q after %v, error %v, want the index in memory", found.Plan, time.Since(began), err)
		}
		if found.Plan == souvenir.PlanMemory {
			return
		}
	}
}

// reportMedian reports the median duration. On a shared machine the mean says little.
func reportMedian(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "ms-p95")
}

func BenchmarkOpenEmpty(b *testing.B) {
	dir := b.TempDir()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		store, err := souvenir.Open(context.Background(), filepath.Join(dir, fmt.Sprint(i, ".db")), nil)
		took = append(took, time.Since(start))
		if err != nil {
			b.Fatal(err)
		}
		store.Close()
	}
	reportMedian(b, took)
}

func BenchmarkAddMemory(b *testing.B) {
	for _, goroutines := range []int{1, 8} {
		b.Run(fmt.Sprint(goroutines, "goroutines"), func(b *testing.B) {
			store := openBench(b, 1)
			memories := sentences(10_000)
			inGoroutines(b, goroutines, "memories/s", func(i int) error {
				_, err := store.AddMemory(context.Background(), memories[i%len(memories)])
				return err
			})
		})
	}
}

func BenchmarkPutMemory(b *testing.B) {
	for _, goroutines := range []int{1, 8} {
		b.Run(fmt.Sprint(goroutines, "goroutines"), func(b *testing.B) {
			store := openBench(b, 1)
			memories := sentences(10_000)
			inGoroutines(b, goroutines, "memories/s", func(i int) error {
				m := memories[i%len(memories)]
				m.Key = fmt.Sprint("key ", i)
				_, err := store.PutMemory(context.Background(), m)
				return err
			})
		})
	}
}

// BenchmarkTenPuts puts ten memories, once in ten transactions and once in one.
func BenchmarkTenPuts(b *testing.B) {
	s := openBench(b, 1)
	put := func(ctx context.Context, round int) error {
		for i := range 10 {
			m := souvenir.NewMemory{Key: fmt.Sprint("key ", i),
				Content: fmt.Sprintf("version %d of the text number %d", round, i)}
			if _, err := s.PutMemory(ctx, m); err != nil {
				return err
			}
		}
		return nil
	}
	round := 0
	for name, run := range map[string]func() error{
		"each alone": func() error { return put(b.Context(), round) },
		"one transaction": func() error {
			return s.Transaction(b.Context(), func(ctx context.Context) error { return put(ctx, round) })
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				round++
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAddMemories(b *testing.B) {
	memories := sentences(10_000)
	var took []time.Duration
	for b.Loop() {
		store := openBench(b, 1)
		start := time.Now()
		if _, err := store.AddMemories(context.Background(), memories, nil); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
		store.Close()
	}
	slices.Sort(took)
	b.ReportMetric(float64(len(memories))/took[len(took)/2].Seconds(), "memories/s")
}

func BenchmarkSearch(b *testing.B) {
	store := openBench(b, 10_000)
	loadIndex(b, store)
	queries := sentences(500)
	for _, c := range []struct {
		name  string
		query souvenir.Query
	}{
		{"hybrid", souvenir.Query{}},
		{"tags", souvenir.Query{Tags: []string{"tag7", "tag8"}}},
		{"filter", souvenir.Query{Filter: souvenir.Filter{"event_type": "decision"}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				q := c.query
				q.Text = strings.Join(strings.Fields(queries[i%len(queries)].Content)[:8], " ")
				start := time.Now()
				results, err := store.Search(context.Background(), q)
				took = append(took, time.Since(start))
				if err != nil || len(results.Hits) == 0 {
					b.Fatalf("got %v %v, want no error and some hits", results, err)
				}
			}
			reportMedian(b, took)
		})
	}
}

// inGoroutines measures how many calls per second the goroutines make together. call gets the call's number.
func inGoroutines(b *testing.B, goroutines int, unit string, call func(i int) error) {
	work := make(chan int)
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			for i := range work {
				if err := call(i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	start := time.Now()
	n := 0
	for ; b.Loop(); n++ {
		work <- n
	}
	close(work)
	group.Wait()
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), unit)
}

// BenchmarkUpdateMemory updates 10,000 memories from 8 goroutines: their state, their content, and their content by a
// put with their key.
func BenchmarkUpdateMemory(b *testing.B) {
	memories := sentences(20_000)
	given, later := memories[:10_000], memories[10_000:]
	for _, kind := range []string{"state", "content", "put"} {
		b.Run(kind, func(b *testing.B) {
			ctx := context.Background()
			store, err := souvenir.Open(ctx, filepath.Join(b.TempDir(), "bench.db"), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			for i := range given {
				given[i].Key = fmt.Sprint("key ", i)
			}
			stored, err := store.AddMemories(ctx, given, nil)
			if err != nil {
				b.Fatal(err)
			}
			update := func(i int) (err error) {
				which, round := i%len(stored), i/len(stored)
				next := later[(which+round)%len(later)]
				switch kind {
				case "state":
					state := fmt.Sprint("state ", round)
					_, err = store.UpdateMemory(ctx, stored[which].ID, souvenir.MemoryUpdate{State: &state})
				case "content":
					_, err = store.UpdateMemory(ctx, stored[which].ID, souvenir.MemoryUpdate{Content: &next.Content})
				case "put":
					next.Key = fmt.Sprint("key ", which)
					_, err = store.PutMemory(ctx, next)
				}
				return err
			}
			inGoroutines(b, 8, "updates/s", update)
		})
	}
}

// BenchmarkBesideImport measures single adds and searches in a store of 10,000 memories: 1,000 of each alone, then as
// many as fit in while 30,000 more are imported. go test -run '^$' -bench BesideImport -benchtime 1x .
func BenchmarkBesideImport(b *testing.B) {
	var export bytes.Buffer
	other := openBench(b, 1)
	if _, err := other.AddMemories(b.Context(), sentences(30_000), nil); err != nil {
		b.Fatal(err)
	}
	if _, err := other.Upkeep().Export(b.Context(), &export, nil); err != nil {
		b.Fatal(err)
	}
	queries := sentences(500)
	for _, beside := range []string{"alone", "import"} {
		b.Run(beside, func(b *testing.B) {
			for b.Loop() {
				store := openBench(b, 10_000)
				var stores, searches []time.Duration
				one := func(i int) {
					m := queries[i%len(queries)]
					began := time.Now()
					if _, err := store.AddMemory(b.Context(), m); err != nil {
						b.Error(err)
					}
					stored := time.Now()
					text := strings.Join(strings.Fields(m.Content)[:8], " ")
					if _, err := store.Search(b.Context(), souvenir.Query{Text: text}); err != nil {
						b.Error(err)
					}
					stores, searches = append(stores, stored.Sub(began)), append(searches, time.Since(stored))
					time.Sleep(time.Millisecond)
				}
				if beside == "alone" {
					for i := range 1000 {
						one(i)
					}
				} else {
					took := besideImport(b, store, export.Bytes(), one)
					b.ReportMetric(30_000/took.Seconds(), "imported/s")
				}
				reportTimes(b, "store", stores)
				reportTimes(b, "search", searches)
			}
		})
	}
}

// besideImport calls one repeatedly until an export is imported, and returns how long the import took.
func besideImport(b *testing.B, store *souvenir.Store, export []byte, one func(int)) time.Duration {
	b.Helper()
	took := make(chan time.Duration, 1)
	go func() {
		began := time.Now()
		if _, err := store.Upkeep().Import(b.Context(), bytes.NewReader(export), nil); err != nil {
			b.Error(err)
		}
		took <- time.Since(began)
	}()
	for i := 0; ; i++ {
		select {
		case t := <-took:
			return t
		default:
			one(i)
		}
	}
}

// reportTimes reports the median, the p99 and the maximum of the durations.
func reportTimes(b *testing.B, what string, took []time.Duration) {
	slices.Sort(took)
	for name, at := range map[string]int{"median": len(took) / 2, "p99": len(took) * 99 / 100, "max": len(took) - 1} {
		b.ReportMetric(float64(took[at].Microseconds())/1000, "ms-"+what+"-"+name)
	}
}

// BenchmarkCheckToken measures checking the MCP token of a request.
func BenchmarkCheckToken(b *testing.B) {
	store := openBench(b, 100)
	if _, err := store.Accounts().AddUser(b.Context(), souvenir.NewUser{ID: "ann", Name: "ann"}); err != nil {
		b.Fatal(err)
	}
	var value string
	for range 100 {
		added, err := store.Accounts().AddToken(b.Context(), souvenir.NewToken{Name: "x", User: "ann"})
		if err != nil {
			b.Fatal(err)
		}
		value = added.Value
	}
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		_, err := store.Accounts().CheckToken(b.Context(), value)
		took = append(took, time.Since(start))
		if err != nil {
			b.Fatal(err)
		}
	}
	reportMedian(b, took)
}

// BenchmarkCheckSignIn measures checking the sign-in of a browser's request.
func BenchmarkCheckSignIn(b *testing.B) {
	store := openBench(b, 100)
	var value string
	for _, name := range []string{"ann", "ben", "carol"} {
		if _, err := store.Accounts().AddUser(b.Context(), souvenir.NewUser{Name: name}); err != nil {
			b.Fatal(err)
		}
		for range 100 {
			added, err := store.Accounts().AddSignIn(b.Context(), souvenir.NewSignIn{User: name})
			if err != nil {
				b.Fatal(err)
			}
			value = added.Value
		}
	}
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		_, err := store.Accounts().CheckSignIn(b.Context(), value)
		took = append(took, time.Since(start))
		if err != nil {
			b.Fatal(err)
		}
	}
	reportMedian(b, took)
}

// BenchmarkCheckPassword measures checking a password, which is slow on purpose.
func BenchmarkCheckPassword(b *testing.B) {
	store := openBench(b, 1)
	if _, err := store.Accounts().AddUser(b.Context(),
		souvenir.NewUser{Name: "ann", Password: "right password"}); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		_, err := store.Accounts().CheckPassword(b.Context(), souvenir.Credentials{Name: "ann", Password: "right password"})
		took = append(took, time.Since(start))
		if err != nil {
			b.Fatal(err)
		}
	}
	reportMedian(b, took)
}

// todoOf makes a todo document with the given number of tasks.
func todoOf(tasks int) string {
	var b strings.Builder
	b.WriteString("## Constitution\n\nKeep it small.\n\n## Spec\n\nA service that remembers.\n\n## Plan\n\nFirst things " +
		"first.\n\n## Tasks\n\n")
	words := sentences(tasks)
	for i := range tasks {
		fmt.Fprintf(&b, "- [ ] T%d %s\n", i, words[i].Content)
	}
	b.WriteString("\n## Gaps\n\nnone\n")
	return b.String()
}

func BenchmarkParseTodo(b *testing.B) {
	content := todoOf(6000)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		if _, err := souvenir.ParseTodo(content); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompleteTask(b *testing.B) {
	for _, tasks := range []int{30, 600} {
		b.Run(fmt.Sprint(tasks, "tasks"), func(b *testing.B) {
			store := openBench(b, 1)
			ctx, n := context.Background(), 0
			var took []time.Duration
			for b.Loop() {
				if n%tasks == 0 {
					if _, err := store.SetTodo(ctx, souvenir.NewTodo{ProjectID: "p", Content: todoOf(tasks)}); err != nil {
						b.Fatal(err)
					}
				}
				start := time.Now()
				_, err := store.CompleteTask(ctx, souvenir.TaskRef{ProjectID: "p", TaskID: fmt.Sprint("T", n%tasks)})
				took = append(took, time.Since(start))
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			reportMedian(b, took)
		})
	}
}

// BenchmarkGetContext gets contexts from 10,000 memories, half of them in a project, with everything that a context can
// include.
func BenchmarkGetContext(b *testing.B) {
	store := openBench(b, 5_000)
	memories := sentences(5_000)
	for i := range memories {
		memories[i].ProjectID = "apollo"
		switch {
		case i%100 < 10:
			memories[i].EventType, memories[i].State = souvenir.EventConversation, []string{"active", "completed"}[i%2]
		case i%100 == 10:
			memories[i].Classification = souvenir.ClassDo
		}
	}
	identity := souvenir.NewMemory{Content: "I am Mira.", EventType: souvenir.EventIdentity}
	memories = append(memories, identity)
	for _, rule := range []souvenir.RuleType{souvenir.RuleDo, souvenir.RuleDont} {
		memories = append(memories, souvenir.NewMemory{Content: strings.Repeat("a rule of the project\n", 100),
			EventType: souvenir.EventProjectRule, RuleType: rule, ProjectID: "apollo"})
	}
	ctx := context.Background()
	if _, err := store.AddMemories(ctx, memories, nil); err != nil {
		b.Fatal(err)
	}
	queries := sentences(500)
	for range 20 { // the index is loaded while the first searches run on disk
		if _, err := store.GetContext(ctx, souvenir.ContextQuery{Query: queries[0].Content}); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		query souvenir.ContextQuery
	}{
		{"query", souvenir.ContextQuery{}},
		{"project", souvenir.ContextQuery{ProjectID: "apollo"}},
		{"budget", souvenir.ContextQuery{ProjectID: "apollo", TokenBudget: 2000}},
		{"newest", souvenir.ContextQuery{ProjectID: "apollo"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				q := c.query
				if c.name != "newest" {
					q.Query = strings.Join(strings.Fields(queries[i%len(queries)].Content)[:8], " ")
				}
				start := time.Now()
				got, err := store.GetContext(ctx, q)
				took = append(took, time.Since(start))
				if err != nil || got.Identity == nil || len(got.Related) == 0 && q.TokenBudget == 0 {
					b.Fatalf("GetContext: got %+v, %v; want an identity and related memories", got, err)
				}
			}
			reportMedian(b, took)
		})
	}
}
