package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/seed"
	"github.com/souvenir-ai/souvenir/internal/testing/usage"
)

// measureOneUser measures the searches of a single user, from the opening on.
func measureOneUser(ctx context.Context, store *souvenir.Store, all []string, opened time.Time, used float64) error {
	took, err := search(ctx, store, all[0])
	if err != nil {
		return err
	}
	fmt.Printf("open to first answer %.0f ms (the search %.0f); %.0f ms of the processor\n",
		ms(time.Since(opened)), ms(took), 1000*(usage.Seconds()-used))
	var meanwhile []time.Duration
	for i := 1; ; i++ {
		overview, err := store.Insights().Overview(ctx, souvenir.OverviewQuery{MemoriesOnly: true, Days: 1})
		if err != nil {
			return err
		}
		if overview.Index != souvenir.IndexLoading {
			fmt.Printf("index: %s after %.1f s, %s\n", overview.Index, time.Since(opened).Seconds(), resident())
			break
		}
		took, err := search(ctx, store, all[i%len(all)])
		if err != nil {
			return err
		}
		meanwhile = append(meanwhile, took)
	}
	if len(meanwhile) > 0 {
		report("while the index is loaded", meanwhile, 0)
	}
	began := usage.Seconds()
	idle, err := searches(ctx, store, all)
	if err != nil {
		return err
	}
	report("idle", idle, usage.Seconds()-began)
	fmt.Println("after the searches:", resident())
	return filtered(ctx, store, all[:200])
}

// filtered measures searches with filters, and in the order of time.
func filtered(ctx context.Context, store *souvenir.Store, all []string) error {
	for _, c := range []struct {
		name  string
		query souvenir.Query
	}{
		{"a tag that 2 % have", souvenir.Query{Tags: []string{"tag7"}}},
		{"three tags, 6 %", souvenir.Query{Tags: []string{"tag7", "tag8", "tag9"}}},
		{"13 tags, 26 %", souvenir.Query{Tags: tags(13)}},
		{"an event type that all have", souvenir.Query{Filter: souvenir.Filter{"event_type": "decision"}}},
		{"created after a date, all fit", souvenir.Query{Filter: souvenir.Filter{
			"created_at": souvenir.Condition{MoreThan: time.Unix(0, 0)}}}},
		{"ordered by time", souvenir.Query{Sort: souvenir.SortUpdatedDesc}},
	} {
		var took []time.Duration
		began := usage.Seconds()
		for _, c.query.Text = range all {
			start := time.Now()
			if _, err := store.Search(ctx, c.query); err != nil {
				return err
			}
			took = append(took, time.Since(start))
		}
		report(c.name, took, usage.Seconds()-began)
	}
	return nil
}

// tags returns the first n tags.
func tags(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("tag", i))
	}
	return all
}

func searches(ctx context.Context, store *souvenir.Store, all []string) (took []time.Duration, err error) {
	for _, text := range all {
		one, err := search(ctx, store, text)
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return took, nil
}

// afterBulk measures the searches that follow an insert of 2,500 memories.
func afterBulk(ctx context.Context, s settings, store *souvenir.Store) error {
	if _, err := store.AddMemories(ctx, seed.Sentences(1000, 2500), nil); err != nil {
		return err
	}
	all := texts(500)
	first, err := search(ctx, store, all[0])
	if err != nil {
		return err
	}
	fmt.Printf("after AddMemories of 2,500 the first search takes %.1f ms\n", ms(first))
	took, err := searches(ctx, store, all[1:50])
	if err != nil {
		return err
	}
	report("after it", took, 0)
	for wait := time.Now(); time.Since(wait) < time.Duration(s.memories/10_000+5)*time.Second; {
		overview, err := store.Insights().Overview(ctx, souvenir.OverviewQuery{MemoriesOnly: true, Days: 1})
		if err != nil {
			return err
		}
		if overview.Index == souvenir.IndexInMemory {
			break
		}
		if _, err := search(ctx, store, all[0]); err != nil {
			return err
		}
	}
	return nil
}

// measureBesideInserts measures searches and single adds during a bulk insert.
func measureBesideInserts(ctx context.Context, s settings, store *souvenir.Store) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.seconds)*time.Second)
	defer cancel()
	added, done := 0, make(chan error, 2)
	go func() {
		for i := uint64(0); ctx.Err() == nil; i++ {
			if _, err := store.AddMemories(ctx, seed.Sentences(2000+i, 2500), nil); err != nil {
				done <- err
				return
			}
			added += 2500
		}
		done <- nil
	}()
	var singles []time.Duration
	go func() {
		for i := 0; ctx.Err() == nil; i++ {
			start := time.Now()
			if _, err := store.AddMemory(ctx, seed.Sentences(uint64(100_000+i), 1)[0]); err != nil {
				done <- err
				return
			}
			singles = append(singles, time.Since(start))
			time.Sleep(20 * time.Millisecond)
		}
		done <- nil
	}()
	all := texts(500)
	var took []time.Duration
	for i := 0; ctx.Err() == nil; i++ {
		one, err := search(ctx, store, all[i%len(all)])
		if err != nil && ctx.Err() == nil {
			return err
		}
		took = append(took, one)
		time.Sleep(time.Millisecond)
	}
	for range 2 {
		if err := <-done; err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	report("beside a bulk insert", took, 0)
	report("AddMemory beside it", singles, 0)
	fmt.Printf("inserted meanwhile: %d; %s\n", added, resident())
	return nil
}

// measureManyUsers measures users who search one after another.
func measureManyUsers(ctx context.Context, s settings, store *souvenir.Store, opened time.Time) error {
	all := texts(20)
	var first, next []time.Duration
	for u := range min(s.users, s.active) {
		view := view(store, s, u)
		for i, text := range all {
			took, err := search(ctx, view, text)
			if err != nil {
				return err
			}
			if i == 0 {
				first = append(first, took)
				if u == 0 {
					fmt.Printf("open to first answer %.0f ms\n", ms(time.Since(opened)))
				}
			} else {
				next = append(next, took)
			}
		}
	}
	report("a user's first search", first, 0)
	report("a user's next searches", next, 0)
	fmt.Printf("after %d of %d users: %s\n", len(first), s.users, resident())
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// resident describes the memory of the process, now and after a garbage collection. Linux only.
func resident() string {
	before := status("VmRSS")
	debug.FreeOSMemory()
	return fmt.Sprintf("%d MiB resident, %d after a garbage collection, %d at most", before, status("VmRSS"),
		status("VmHWM"))
}

// status reads a line of the process's status, in MiB.
func status(field string) (mib int) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			_, _ = fmt.Sscan(rest, &mib)
		}
	}
	return mib / 1024
}
