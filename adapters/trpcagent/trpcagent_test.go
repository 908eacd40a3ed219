package trpcagent_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	adapter "github.com/souvenir-ai/souvenir/adapters/trpcagent"
	"github.com/souvenir-ai/souvenir/adapters/trpcagent/internal/framework/memory"
	"github.com/souvenir-ai/souvenir/adapters/trpcagent/internal/framework/session"
	"github.com/souvenir-ai/souvenir/adapters/trpcagent/internal/framework/tool"
)

type memories = adapter.Service[memory.UserKey, memory.Key, memory.Entry, tool.Tool, session.Session, memory.AddOption,
	memory.UpdateOption, memory.SearchOption]

var _ memory.Service = (*memories)(nil)

func newService(t testing.TB) (*memories, *souvenir.Store) {
	t.Helper()
	store, err := souvenir.Open(context.Background(), filepath.Join(t.TempDir(), "memory.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return adapter.New[memory.UserKey, memory.Key, memory.Entry, tool.Tool, session.Session](store,
		memory.ResolveAddOptions, memory.ResolveUpdateOptions, memory.ResolveUpdateResult,
		memory.ResolveSearchOptions), store
}

func user(app, id string) memory.UserKey { return memory.UserKey{AppName: app, UserID: id} }

var anna = user("travel", "anna")

func add(t testing.TB, s memory.Service, user memory.UserKey, text string, topics []string,
	options ...memory.AddOption) {
	t.Helper()
	if err := s.AddMemory(t.Context(), user, text, topics, options...); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, s memory.Service, user memory.UserKey, limit int) []*memory.Entry {
	t.Helper()
	all, err := s.ReadMemories(t.Context(), user, limit)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func texts(entries []*memory.Entry) []string {
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Memory.Memory)
	}
	return list
}

func of(user memory.UserKey, id string) memory.Key {
	return memory.Key{AppName: user.AppName, UserID: user.UserID, MemoryID: id}
}

func TestMemoriesComeBackAsTheyWereAdded(t *testing.T) {
	s, _ := newService(t)
	when := time.Date(2024, 5, 7, 9, 30, 0, 0, time.UTC)
	add(t, s, anna, "安娜五月和本去爬富士山。", []string{"travel", " ", "travel", "爬山"},
		memory.WithMetadata(&memory.Metadata{Kind: "episode",
			EventTime: &when, Participants: []string{"Anna", "Ben"}, Location: "富士山"}))
	got := read(t, s, anna, 0)
	if len(got) != 1 || got[0].Memory == nil {
		t.Fatalf("got %d entries, want 1 with its memory", len(got))
	}
	e, m := got[0], got[0].Memory
	if e.ID == "" || e.AppName != "travel" || e.UserID != "anna" || e.CreatedAt.IsZero() ||
		!m.LastUpdated.Equal(e.UpdatedAt) {
		t.Errorf("got %+v, want an id, travel, anna and times", e)
	}
	if m.Memory != "安娜五月和本去爬富士山。" || !slices.Equal(m.Topics, []string{"travel", "爬山"}) || m.Kind != "episode" ||
		m.EventTime == nil || !m.EventTime.Equal(when) || !slices.Equal(m.Participants, []string{"Anna", "Ben"}) ||
		m.Location != "富士山" {
		t.Errorf("got %+v, want what was added", m)
	}
	found, err := s.SearchMemories(t.Context(), anna, "富士山")
	if err != nil || len(found) != 1 || found[0].ID != e.ID || found[0].Score <= 0 || found[0].Score > 1 {
		t.Errorf("got %+v, %v, want the memory with a score of at most 1", found, err)
	}
}

func TestAddingAgainChangesTopicsOnly(t *testing.T) {
	s, store := newService(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := s.AddMemory(t.Context(), anna, "Tea at four.", []string{"tea"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	add(t, s, anna, "Tea at four.", []string{"tea"})
	first := read(t, s, anna, 0)
	if len(first) != 1 {
		t.Fatalf("got %q, want one memory", texts(first))
	}
	view := store.As(souvenir.Access{Namespace: "travel", User: "anna"})
	if history, err := view.Revisions(t.Context(), first[0].ID); err != nil || len(history) != 1 {
		t.Errorf("the same again: got %d revisions, %v, want 1", len(history), err)
	}
	add(t, s, anna, "Tea at four.", []string{"habits"}, memory.WithMetadata(&memory.Metadata{Location: "Kiel"}))
	got := read(t, s, anna, 0)
	if len(got) != 1 || got[0].ID != first[0].ID || !slices.Equal(got[0].Memory.Topics, []string{"habits"}) ||
		got[0].Memory.Location != "Kiel" || got[0].Memory.Kind != "fact" {
		t.Errorf("with other topics: got %+v, want the same memory with habits, Kiel and fact", got[0].Memory)
	}
}

func TestUpdatesKeepTheIDAndWhatIsNotGiven(t *testing.T) {
	s, store := newService(t)
	add(t, s, anna, "Anna's home is Kiel.", []string{"home"},
		memory.WithMetadata(&memory.Metadata{Kind: "episode", Location: "Kiel"}))
	id := read(t, s, anna, 0)[0].ID
	var result memory.UpdateResult
	if err := s.UpdateMemory(t.Context(), of(anna, id), "Anna's home is Oslo.", []string{"home", "moved"},
		memory.WithUpdateMetadata(&memory.Metadata{Participants: []string{"Anna"}}),
		memory.WithUpdateResult(&result)); err != nil {
		t.Fatal(err)
	}
	got := read(t, s, anna, 0)
	if len(got) != 1 || got[0].ID != id || result.MemoryID != id || got[0].Memory.Memory != "Anna's home is Oslo." ||
		got[0].Memory.Location != "Kiel" || got[0].Memory.Kind != "episode" ||
		!slices.Equal(got[0].Memory.Topics, []string{"home", "moved"}) {
		t.Errorf("got %+v, result %q, want the new text under %s, still Kiel and episode", got[0].Memory,
			result.MemoryID, id)
	}
	if err := s.UpdateMemory(t.Context(), of(anna, id), "Anna's home is Oslo.", nil); err != nil {
		t.Errorf("without options: got %v, want no error", err)
	}
	add(t, s, anna, "Anna's home is Kiel.", nil) // the former text is another memory
	if got := texts(read(t, s, anna, 0)); len(got) != 2 {
		t.Errorf("got %q, want both", got)
	}
	other, err := store.As(souvenir.Access{Namespace: "travel", User: "anna"}).AddMemory(t.Context(),
		souvenir.NewMemory{Content: "of a project", ProjectID: "p"})
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []memory.Key{of(anna, "nowhere"), of(anna, ""), of(anna, other.ID),
		of(user("travel", "ben"), id),
		of(user("shop", "anna"), id), of(user("", "anna"), id), of(user("travel", ""), id)} {
		if err := s.UpdateMemory(t.Context(), wrong, "x", nil); err == nil {
			t.Errorf("UpdateMemory(%+v): got no error, want one", wrong)
		}
		if err := s.DeleteMemory(t.Context(), wrong); err == nil {
			t.Errorf("DeleteMemory(%+v): got no error, want one", wrong)
		}
	}
	if err := s.DeleteMemory(t.Context(), of(anna, id)); err != nil {
		t.Error(err)
	}
	if got := texts(read(t, s, anna, 0)); !slices.Equal(got, []string{"Anna's home is Kiel."}) {
		t.Errorf("after the deletion: got %q, want the other one", got)
	}
}

func TestUsersAndApplicationsAreApart(t *testing.T) {
	s, store := newService(t)
	users := []memory.UserKey{anna, user("travel", "ben"), user("shop", "anna")}
	for _, u := range users {
		add(t, s, u, "Tea of "+u.AppName+" "+u.UserID, nil)
	}
	view := store.As(souvenir.Access{Namespace: "travel", User: "anna"})
	if _, err := view.AddMemory(t.Context(), souvenir.NewMemory{Content: "Tea of a project", ProjectID: "p"}); err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		found, err := s.SearchMemories(t.Context(), u, "tea")
		want := []string{"Tea of " + u.AppName + " " + u.UserID}
		if got := texts(found); err != nil || !slices.Equal(got, want) || !slices.Equal(texts(read(t, s, u, 0)), want) {
			t.Errorf("%+v: got %q, %v, want %q", u, got, err, want)
		}
	}
	if err := s.ClearMemories(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	for i, u := range users {
		if got := texts(read(t, s, u, 0)); len(got) != min(i, 1) {
			t.Errorf("%+v after anna's were cleared: got %q, want %d", u, got, min(i, 1))
		}
	}
	if found, err := view.Search(t.Context(), souvenir.Query{Text: "tea"}); err != nil || len(found.Hits) != 1 {
		t.Errorf("got %d hits, %v, want the memory of the project", len(found.Hits), err)
	}
	for _, missing := range []memory.UserKey{{}, user("travel", ""), user("", "anna")} {
		_, searched := s.SearchMemories(t.Context(), missing, "tea")
		_, listed := s.ReadMemories(t.Context(), missing, 0)
		for i, err := range []error{searched, listed, s.AddMemory(t.Context(), missing, "x", nil),
			s.ClearMemories(t.Context(), missing)} {
			if err == nil {
				t.Errorf("%+v, call %d: got no error, want one", missing, i)
			}
		}
	}
}

func TestSearchesTakeTheFrameworksOptions(t *testing.T) {
	s, _ := newService(t)
	day := func(d int) *time.Time { at := time.Date(2024, 5, d, 0, 0, 0, 0, time.UTC); return &at }
	add(t, s, anna, "Anna likes ferries.", nil, memory.WithMetadata(&memory.Metadata{Kind: "fact"}))
	for d := 1; d <= 12; d++ {
		add(t, s, anna, fmt.Sprintf("Anna took the ferry number %d.", d), nil,
			memory.WithMetadata(&memory.Metadata{Kind: "episode", EventTime: day(d)}))
	}
	for _, c := range []struct {
		name    string
		options memory.SearchOptions
		want    int
	}{
		{"default", memory.SearchOptions{Query: "ferry"}, 10},
		{"all", memory.SearchOptions{Query: "ferry", MaxResults: 50}, 13},
		{"more than there may be", memory.SearchOptions{Query: "ferry", MaxResults: 1000}, 13},
		{"negative", memory.SearchOptions{Query: "ferry", MaxResults: -1}, 10},
		{"of a kind", memory.SearchOptions{Query: "ferry", Kind: "fact"}, 1},
		{"of a kind first", memory.SearchOptions{Query: "ferry", Kind: "fact", KindFallback: true, MaxResults: 5}, 5},
		{"in a time", memory.SearchOptions{Query: "ferry", TimeAfter: day(3), TimeBefore: day(5)}, 3},
		{"after a time", memory.SearchOptions{Query: "ferry", TimeAfter: day(11)}, 2},
		{"unrelated", memory.SearchOptions{Query: "quantum chromodynamics", SimilarityThreshold: 0.5}, 0},
		{"blank", memory.SearchOptions{Query: " "}, 0},
		{"long", memory.SearchOptions{Query: strings.Repeat("ferry ", souvenir.MaxQuery)}, 10},
	} {
		found, err := s.SearchMemories(t.Context(), anna, "replaced by the options", memory.WithSearchOptions(c.options))
		if err != nil || found == nil || len(found) != c.want {
			t.Errorf("%s: got %q, %v, want %d", c.name, texts(found), err, c.want)
		}
		if c.options.Kind != "" && (len(found) == 0 || found[0].Memory.Kind != c.options.Kind) {
			t.Errorf("%s: got %q first, want one of the kind %s", c.name, texts(found), c.options.Kind)
		}
	}
	got := texts(read(t, s, anna, 2))
	if want := []string{"Anna took the ferry number 12.", "Anna took the ferry number 11."}; !slices.Equal(got, want) {
		t.Errorf("the last two: got %q, want %q", got, want)
	}
}

func TestBadInputIsAnErrorAndStoresNothing(t *testing.T) {
	s, _ := newService(t)
	for _, text := range []string{"", " \n", "a\x00b", strings.Repeat("x", souvenir.MaxContent+1)} {
		if err := s.AddMemory(t.Context(), anna, text, nil); !errors.Is(err, souvenir.ErrInvalid) &&
			!errors.Is(err, souvenir.ErrTooLarge) {
			t.Errorf("%.20q: got %v, want ErrInvalid or ErrTooLarge", text, err)
		}
	}
	if err := s.AddMemory(t.Context(), anna, "x", []string{strings.Repeat("t", 200)}); err == nil {
		t.Error("a long topic: got no error, want one")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, searched := s.SearchMemories(ctx, anna, "x")
	_, blank := s.SearchMemories(ctx, anna, "")
	_, listed := s.ReadMemories(ctx, anna, 0)
	for i, err := range []error{searched, blank, listed, s.AddMemory(ctx, anna, "x", nil), s.ClearMemories(ctx, anna),
		s.UpdateMemory(ctx, of(anna, "x"), "x", nil), s.DeleteMemory(ctx, of(anna, "x"))} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: got %v, want context.Canceled", i, err)
		}
	}
	if got := read(t, s, anna, 0); len(got) != 0 {
		t.Errorf("got %q, want nothing", texts(got))
	}
}

type named string

func (n named) Declaration() string { return string(n) }

func TestToolsAndSessionsArePassedOn(t *testing.T) {
	s, _ := newService(t)
	err := s.EnqueueAutoMemoryJob(t.Context(), &session.Session{ID: "s"})
	if err != nil || len(s.Tools()) != 0 || s.Close() != nil {
		t.Errorf("nothing set: got %v and %d tools, want neither", err, len(s.Tools()))
	}
	var learned string
	s.Extract = func(_ context.Context, of *session.Session) error { learned = of.ID; return nil }
	s.Offered = []tool.Tool{named("memory_search")}
	if err := s.EnqueueAutoMemoryJob(t.Context(), &session.Session{ID: "s"}); err != nil || learned != "s" {
		t.Errorf("got %q, %v, want s", learned, err)
	}
	s.Tools()[0] = nil
	if got := s.Tools(); len(got) != 1 || got[0] != tool.Tool(named("memory_search")) {
		t.Errorf("got the tools %v, want memory_search", got)
	}
}
