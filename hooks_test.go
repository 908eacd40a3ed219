package souvenir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// The methods of Store that write, search or delete memories, with the kind of operation that hooks see.
var hookedMethods = map[string]OperationKind{
	"AddMemory": OperationStore, "AddMemories": OperationStore, "PutMemory": OperationStore, "PutMemories": OperationStore,
	"SetRule": OperationStore, "SetTodo": OperationStore, "SetIdentityMemory": OperationStore,
	"UpdateMemory": OperationUpdate, "UpdateMemories": OperationUpdate, "RestoreRevision": OperationUpdate,
	"UpdateTodoSection": OperationUpdate, "CompleteTask": OperationUpdate,
	"DeleteMemory": OperationDelete, "DeleteMemories": OperationDelete, "DeleteRule": OperationDelete,
	"DeleteCollection": OperationDelete, "DeleteProject": OperationDelete,
	"Conversation.Append": OperationStore, "Conversation.Delete": OperationDelete, "Conversation.Clear": OperationDelete,
	"Search": OperationSearch, "SearchBatch": OperationSearch, "SearchAll": OperationSearch,
	"GetContext":     OperationSearch,
	"GetModuleState": OperationSearch,
}

// unhookedMethods store no new text of a memory.
var unhookedMethods = []string{
	"AddCollection", "UpdateCollection", "AddProject", "UpdateProject", "AddMember", "UpdateMember", "DeleteMember",
	"AddFile", "UpdateFile", "DeleteFile", "SetPreferences", "UpdatePreferences",
	"Trash.Restore", "Trash.Erase", "Trash.Empty",
}

const (
	secret   = "hunter2"
	redacted = "[gone]"
)

const hookTodo = "## Constitution\n\n## Spec\n\n## Plan\n\n## Tasks\n\n- [ ] T1 " + secret + "\n\n## Gaps\n"

// observing returns hooks that only observe.
func observing(after func(Operation, OperationResult)) Hooks {
	return Hooks{After: func(_ context.Context, o Operation, r OperationResult) { after(o, r) }}
}

// openHooks opens a store in memory with hooks.
func openHooks(t testing.TB, hooks ...Hooks) *Store {
	t.Helper()
	s, err := Open(t.Context(), ":memory:", &Options{Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// redaction returns hooks that remove the secret from every text.
func redaction() Hooks {
	in := func(s *string) { *s = strings.ReplaceAll(*s, secret, redacted) }
	var deep func(v any) any
	deep = func(v any) any {
		switch v := v.(type) {
		case string:
			in(&v)
			return v
		case []any:
			for i := range v {
				v[i] = deep(v[i])
			}
		case map[string]any:
			for key := range v {
				v[key] = deep(v[key])
			}
		}
		return v
	}
	return Hooks{
		BeforeStore: func(_ context.Context, _ Operation, m *NewMemory) error {
			in(&m.Content)
			in(&m.State)
			for i := range m.Tags {
				in(&m.Tags[i])
			}
			deep(m.Metadata)
			return nil
		},
		BeforeUpdate: func(_ context.Context, _ Operation, u *MemoryUpdate) error {
			for _, s := range []*string{u.Content, u.State} {
				if s != nil {
					in(s)
				}
			}
			if u.Tags != nil {
				for i := range *u.Tags {
					in(&(*u.Tags)[i])
				}
			}
			deep(u.Metadata)
			return nil
		},
		BeforeSearch: func(_ context.Context, _ Operation, q *Query) error { in(&q.Text); return nil },
	}
}

// listening is an embedder that records the texts it gets.
type listening struct {
	Embedder
	mu    sync.Mutex
	heard []string
}

func (l *listening) Embed(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error) {
	l.mu.Lock()
	l.heard = append(l.heard, texts...)
	l.mu.Unlock()
	return l.Embedder.Embed(ctx, purpose, texts)
}

func TestRedactedTextReachesNeitherEmbedderNorFileNorLog(t *testing.T) {
	longtest.Only(t)
	for _, method := range longtest.Keys(hookedMethods, 1, 4) {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			embedder := &listening{Embedder: Builtin()}
			path := filepath.Join(t.TempDir(), "store.db")
			s, err := Open(t.Context(), path, &Options{Hooks: []Hooks{redaction()}, Embedder: embedder,
				Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			if err != nil {
				t.Fatal(err)
			}
			callHooked(t, s, method)
			kept := ""
			for m, err := range s.Memories(t.Context(), MemoryList{}) {
				if err != nil {
					t.Fatal(err)
				}
				kept += fmt.Sprintf("%+v", m)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for where, text := range map[string]string{"the memories": kept, "the file": string(file), "the log": log.String(),
				"the embedder": strings.Join(embedder.heard, "\n")} {
				if strings.Contains(strings.ToLower(text), secret) {
					t.Errorf("%s: %s has the secret, got %v, want no %q in the text", method, where, strings.ToLower(text), secret)
				}
			}
			kind := hookedMethods[method]
			embeds := kind == OperationStore || kind == OperationSearch
			if embeds && !strings.Contains(strings.Join(embedder.heard, "\n"), redacted) {
				t.Errorf("%s: the embedder was not given the rewritten text but %q, want %q in the heard", method, embedder.heard,
					redacted)
			}
		})
	}
}

var errPolicy = errors.New("the policy says no")

// refusing returns hooks that refuse everything with an error.
func refusing(err error) Hooks {
	return Hooks{
		BeforeStore:  func(context.Context, Operation, *NewMemory) error { return err },
		BeforeUpdate: func(context.Context, Operation, *MemoryUpdate) error { return err },
		BeforeDelete: func(context.Context, Operation) error { return err },
		BeforeSearch: func(context.Context, Operation, *Query) error { return err },
	}
}

func TestAHookRefuses(t *testing.T) {
	s := openHooks(t)
	conflict := &Error{Kind: KindConflict, Argument: "content", Message: "content is known already"}
	for method := range hookedMethods {
		var seen []error
		watch := observing(func(_ Operation, r OperationResult) { seen = append(seen, r.Err) })
		s.options.Hooks = []Hooks{watch, refusing(errPolicy)}
		var known *Error
		if err := tryHooked(t, s, method); !errors.Is(err, errPolicy) || !errors.Is(err, ErrForbidden) ||
			!errors.As(err, &known) || !strings.Contains(known.Message, errPolicy.Error()) {
			t.Errorf("%s: got %#v, want the hook's error with the kind forbidden", method, err)
		}
		if len(seen) != 1 || !errors.Is(seen[0], errPolicy) {
			t.Errorf("%s: the first hooks saw %v after it, want the refusal once", method, seen)
		}
		for _, own := range []error{conflict, context.Canceled} {
			s.options.Hooks = []Hooks{refusing(own)}
			if err := tryHooked(t, s, method); !errors.Is(err, own) && !strings.HasSuffix(err.Error(), "s[0]: "+own.Error()) {
				t.Errorf("%s: got %v, want %v as it is", method, err, own)
			}
		}
		s.options.Hooks = []Hooks{{BeforeStore: panicking1, BeforeUpdate: panicking2, BeforeDelete: panicking3,
			BeforeSearch: panicking4}}
		if err := tryHooked(t, s, method); !errors.Is(err, ErrInternal) {
			t.Errorf("%s: got %v when a hook panics, want an internal error", method, err)
		}
	}
	for m, err := range s.Memories(t.Context(), MemoryList{}) {
		if err != nil || strings.Contains(fmt.Sprint(m), secret) {
			t.Fatalf("was stored although it was refused: %v %v, want no error and no %q in it", m.Content, err, secret)
		}
	}
}

func panicking1(context.Context, Operation, *NewMemory) error    { panic("an own panic with " + secret) }
func panicking2(context.Context, Operation, *MemoryUpdate) error { panic(new(runtime.PanicNilError)) }
func panicking3(context.Context, Operation) error                { panic(errPolicy) }
func panicking4(context.Context, Operation, *Query) error        { panic(error(nil)) } //nolint:govet // on purpose

func TestARefusalNamesThePositionInABatch(t *testing.T) {
	s := openHooks(t, Hooks{BeforeStore: func(_ context.Context, o Operation, m *NewMemory) error {
		if o.Count != 3 {
			t.Errorf("Count is %d, want 3", o.Count)
		}
		if m.Content == "two" {
			return errPolicy
		}
		return nil
	}})
	_, err := s.AddMemories(t.Context(), []NewMemory{{Content: "one"}, {Content: "two"}, {Content: "three"}}, nil)
	if err == nil || err.Error() != "memories[1]: "+errPolicy.Error() || !errors.Is(err, errPolicy) {
		t.Errorf("got %v, want the error with its position", err)
	}
	for m, err := range s.Memories(t.Context(), MemoryList{}) {
		t.Errorf("after a refused batch: got memory %q, %v, want none", m.Content, err)
	}
}

func TestPanicsOfObserversAreNotTheEnd(t *testing.T) {
	var log bytes.Buffer
	after := 0
	s, err := Open(t.Context(), ":memory:", &Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Hooks: []Hooks{
		observing(func(Operation, OperationResult) { after++ }),
		observing(func(Operation, OperationResult) { panic("with " + secret) }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, err := s.AddMemory(t.Context(), NewMemory{Content: "stays"})
	if err != nil || m.ID == "" || after != 1 {
		t.Errorf("got %v and %d calls of the other After, want the memory that was stored, and 1", err, after)
	}
	if !strings.Contains(log.String(), "a hook panicked") || strings.Contains(log.String(), secret) {
		t.Errorf("the log is %q, want the panic without its text", log.String())
	}
	panics := Hooks{Start: func(context.Context, Operation) context.Context { panic("no") }}
	s.options.Hooks = []Hooks{s.options.Hooks[0], panics}
	if _, err = s.AddMemory(t.Context(), NewMemory{Content: "x"}); !errors.Is(err, ErrInternal) || after != 2 {
		t.Errorf("got %v and %d calls when Start panics, want an internal error, and 2", err, after)
	}
}

func TestANilErrorOfAHookIsNamed(t *testing.T) {
	var none *Error
	s := openHooks(t, Hooks{BeforeStore: func(context.Context, Operation, *NewMemory) error { return none }})
	_, err := s.AddMemory(t.Context(), NewMemory{Content: "x"})
	if !errors.Is(err, ErrInternal) || !strings.Contains(err.Error(), "BeforeStore returned a nil *souvenir.Error") {
		t.Errorf("got %v, want an internal error that names the hook and what it returned", err)
	}
}

func TestHooksObserve(t *testing.T) {
	type seen struct {
		o Operation
		r OperationResult
	}
	var plain, full []seen
	type key struct{}
	started := 0
	s := openHooks(t, Hooks{
		Start: func(ctx context.Context, o Operation) context.Context {
			started++
			return context.WithValue(ctx, key{}, o.Method)
		},
		After: func(ctx context.Context, o Operation, r OperationResult) {
			if ctx.Value(key{}) != o.Method {
				t.Errorf("After does not get the context of Start, want %v", o.Method)
			}
			plain = append(plain, seen{o, r})
		},
	}, Hooks{Texts: true, After: func(_ context.Context, o Operation, r OperationResult) {
		full = append(full, seen{o, r})
	}})
	ctx, mine := t.Context(), s.As(Access{User: "ann", Through: "tool"})
	added, err := mine.AddMemories(ctx, []NewMemory{{Content: "first"}, {Content: "second"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = mine.Search(ctx, Query{Text: "second"}); err != nil {
		t.Fatal(err)
	}
	if _, err = mine.UpdateMemories(ctx, MemoriesUpdate{All: true, Change: MemoryUpdate{State: ptr("done")}}); err != nil {
		t.Fatal(err)
	}
	if err = mine.DeleteMemory(ctx, added[0].ID, nil); err != nil {
		t.Fatal(err)
	}
	_, missing := mine.UpdateMemory(ctx, "nothing", MemoryUpdate{Content: ptr("text")})
	if started != 5 || len(plain) != 5 || len(full) != 5 {
		t.Fatalf("%d started, %d and %d ended, want 5 of each", started, len(plain), len(full))
	}
	ids := []string{added[0].ID, added[1].ID}
	for i, want := range []seen{
		{Operation{Kind: OperationStore, Method: "AddMemories", Count: 2}, OperationResult{Count: 2, IDs: ids}},
		{Operation{Kind: OperationSearch, Method: "Search"}, OperationResult{Count: 2, IDs: ids}},
		{Operation{Kind: OperationUpdate, Method: "UpdateMemories", IDs: ids, Count: 2}, OperationResult{Count: 2}},
		{Operation{Kind: OperationDelete, Method: "DeleteMemory", IDs: ids[:1], Count: 1}, OperationResult{Count: 1}},
		{Operation{Kind: OperationUpdate, Method: "UpdateMemory", IDs: []string{"nothing"}, Count: 1},
			OperationResult{Err: missing}},
	} {
		got := plain[i]
		if got.o.Access.User != "ann" || got.o.Access.Through != "tool" || got.r.Duration <= 0 {
			t.Errorf(`%s: the access is %+v and the duration %v, want user "ann", through "tool" and duration more than 0`,
				got.o.Method, got.o.Access, got.r.Duration)
		}
		if got.r.Query != "" || got.r.Memories != nil {
			t.Errorf("%s: got texts for hooks that did not ask, want no query and no memories", got.o.Method)
		}
		slices.Sort(got.r.IDs)
		got.o.Access, got.r.Duration = Access{}, 0
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	if full[0].r.Memories[1].Content != "second" || full[1].r.Query != "second" || len(full[1].r.Memories) != 2 {
		t.Errorf(`with Texts, hooks got %+v and %+v, want content "second", query "second" and 2 memories`, full[0].r,
			full[1].r)
	}
}

func TestHooksRunInOrder(t *testing.T) {
	var order []string
	named := func(name string) Hooks {
		return Hooks{
			Start: func(ctx context.Context, _ Operation) context.Context {
				order = append(order, "start "+name)
				return nil
			},
			BeforeStore: func(_ context.Context, _ Operation, m *NewMemory) error {
				m.Content += name
				return nil
			},
			After: func(context.Context, Operation, OperationResult) { order = append(order, "after "+name) },
		}
	}
	s := openHooks(t, named("a"), named("b"))
	m, err := s.AddMemory(t.Context(), NewMemory{Content: "text "})
	if err != nil || m.Content != "text ab" {
		t.Errorf("stored %q, %v, want both hooks to have added to it in order", m.Content, err)
	}
	if want := []string{"start a", "start b", "after b", "after a"}; !slices.Equal(order, want) {
		t.Errorf("called %q, want %q", order, want)
	}
}

func TestHooksMayCallTheStore(t *testing.T) {
	var s *Store
	calls := 0
	use := func(ctx context.Context, o Operation) {
		calls++
		view := s.As(o.Access)
		m, err := view.AddMemory(ctx, NewMemory{Content: fmt.Sprint("log entry ", calls), EventType: "log"})
		if err != nil {
			t.Error("a hook cannot store:", err)
		}
		if found, err := view.Search(ctx, Query{Text: "log entry"}); err != nil || len(found.Hits) == 0 {
			t.Errorf("a hook cannot search: %v, want no error and some hits", err)
		}
		if err := view.DeleteMemory(ctx, m.ID, nil); err != nil {
			t.Error("a hook cannot delete:", err)
		}
	}
	s = openHooks(t, Hooks{
		Start:       func(ctx context.Context, o Operation) context.Context { use(ctx, o); return ctx },
		BeforeStore: func(ctx context.Context, o Operation, _ *NewMemory) error { use(ctx, o); return nil },
		After:       func(ctx context.Context, o Operation, _ OperationResult) { use(ctx, o) },
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends a deadlock
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex // the test counts calls, not the store
	for range 4 {
		all.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			if _, err := s.AddMemory(ctx, NewMemory{Content: "from outside"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if calls != 12 {
		t.Errorf("hooks were called %d times, want 12: not for what hooks do", calls)
	}
}

func TestHooksRunAtTheSameTime(t *testing.T) {
	const n = 4
	var meeting sync.WaitGroup
	meeting.Add(n)
	s := openHooks(t, Hooks{BeforeStore: func(context.Context, Operation, *NewMemory) error {
		meeting.Done()
		meeting.Wait() // each waits for all others
		return nil
	}})
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if _, err := s.AddMemory(t.Context(), NewMemory{Content: "meet"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestHooksGetACopy(t *testing.T) {
	s := openHooks(t, Hooks{
		BeforeStore: func(_ context.Context, _ Operation, m *NewMemory) error {
			if m.ShownMetadata != nil || m.State != "open" || m.Metadata["note"] != "x" {
				t.Errorf("a hook got %+v, want known keys in fields and own ones in Metadata", m)
			}
			m.Tags[0], m.Metadata["deep"].(map[string]any)["key"], m.Embedding = "changed", "changed", nil
			return nil
		},
		BeforeUpdate: func(_ context.Context, _ Operation, u *MemoryUpdate) error {
			*u.Content, (*u.Tags)[0], u.Metadata["deep"].(map[string]any)["key"] = "changed", "changed", "changed"
			return nil
		},
	})
	given := NewMemory{Content: "text", Tags: []string{"tag"},
		Metadata:      map[string]any{"deep": map[string]any{"key": "v"}},
		ShownMetadata: map[string]any{"state": "open", "note": "x"}}
	m, err := s.AddMemory(t.Context(), given)
	if err != nil {
		t.Fatal(err)
	}
	update := MemoryUpdate{Content: ptr("new"), Tags: &given.Tags, Metadata: given.Metadata}
	if m, err = s.UpdateMemory(t.Context(), m.ID, update); err != nil || m.Content != "changed" {
		t.Fatalf(`got %v %v, want no error and content "changed"`, m.Content, err)
	}
	if given.Tags[0] != "tag" || given.Metadata["deep"].(map[string]any)["key"] != "v" || *update.Content != "new" {
		t.Errorf(`a hook has changed the caller's %+v, %q, want tag "tag", metadata "v" and content "new" as before`,
			given, *update.Content)
	}
}

// TestIdleHooksChangeNothing compares updates with and without hooks.
func TestIdleHooksChangeNothing(t *testing.T) {
	longtest.Only(t)
	nothing := Hooks{
		BeforeStore:  func(context.Context, Operation, *NewMemory) error { return nil },
		BeforeUpdate: func(context.Context, Operation, *MemoryUpdate) error { return nil },
	}
	plain, hooked := openHooks(t), openHooks(t, nothing)
	first := NewMemory{Content: "text", State: "open", Tags: []string{"a"}, ProjectName: "p", EventTime: time.Unix(1, 0),
		Metadata: map[string]any{"state": "own", "custom": 1, "list": []any{"a"}, "deep": map[string]any{"a": 1, "b": 2}}}
	for i, u := range []MemoryUpdate{
		{},
		{ShownMetadata: map[string]any{"state": nil, "deep": map[string]any{"a": nil}}},
		{ShownMetadata: map[string]any{"custom": nil}},
		{ShownMetadata: map[string]any{"custom": map[string]any{"state": "other", "custom": nil}, "list": nil}},
		{ShownMetadata: map[string]any{"custom": "text", "tags": []string{}}},
		{ShownMetadata: map[string]any{"deep": "text"}, Metadata: map[string]any{"deep": map[string]any{"c": 3}}},
		{ShownMetadata: map[string]any{"custom": map[string]any{"deep": "text"}},
			Metadata: map[string]any{"deep": map[string]any{"c": 3}}},
		{ShownMetadata: map[string]any{"custom": map[string]any{"x": 1}, "y": 2},
			Metadata: map[string]any{"z": 3, "list": nil}},
		{ShownMetadata: map[string]any{"project_id": "q", "state": "s"}, State: ptr("t")},
		{ProjectName: ptr(""), Importance: ptr(ImportanceHigh), EventType: ptr("")},
		{Tags: ptr([]string(nil)), Related: ptr([]string{}), EventTime: ptr(time.Time{})},
		{Content: ptr("other"), Classification: ptr(ClassNotes), Metadata: map[string]any{"deep": nil}},
		{ShownMetadata: map[string]any{"state": 5}},
		{Content: ptr(" ")},
		{RuleType: ptr(RuleDo)},
	} {
		var states []string
		for _, s := range []*Store{plain, hooked} {
			m, err := s.AddMemory(t.Context(), first)
			if err != nil {
				t.Fatal(err)
			}
			m, err = s.UpdateMemory(t.Context(), m.ID, u)
			if err == nil {
				var back StoredMemory
				if back, err = s.RestoreRevision(t.Context(), m.ID, 1); err == nil {
					m.Warnings = append(m.Warnings, fmt.Sprint(back.ShownMetadata(), back.Content, back.EventTime.Unix()))
				} else if errors.Is(err, ErrNotFound) { // nothing had changed
					err = nil
				}
			}
			states = append(states, fmt.Sprint(m.Content, m.ShownMetadata(), m.EventTime.Unix(), m.Revision, m.Warnings, err))
		}
		for j := range states { // each store gives the project its own id
			states[j] = regexp.MustCompile(`project_id:[0-9a-f-]{36}`).ReplaceAllString(states[j], "project_id:p")
		}
		if states[0] != states[1] {
			t.Errorf("update %d\nwithout hooks %s\nwith hooks    %s, want the same", i, states[0], states[1])
		}
	}
}

func TestHookResultsAreValidated(t *testing.T) {
	for name, change := range map[string]func(*NewMemory){
		"content": func(m *NewMemory) { m.Content = "" },
		"tags":    func(m *NewMemory) { m.Tags = []string{"\xff"} },
		"created": func(m *NewMemory) { m.CreatedAt = time.Now().Add(time.Hour) },
		"depth":   func(m *NewMemory) { m.Metadata = map[string]any{"f": func() {}} },
	} {
		s := openHooks(t, Hooks{BeforeStore: func(_ context.Context, _ Operation, m *NewMemory) error {
			change(m)
			return nil
		}})
		if _, err := s.AddMemory(t.Context(), NewMemory{Content: "text"}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	s := openHooks(t, Hooks{BeforeSearch: func(_ context.Context, _ Operation, q *Query) error {
		q.Limit = -1
		return nil
	}})
	if _, err := s.Search(t.Context(), Query{Text: "x"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a limit of a hook: got %v, want ErrInvalid", err)
	}
}

func TestAHookNarrowsASearch(t *testing.T) {
	s := openHooks(t, Hooks{BeforeSearch: func(_ context.Context, _ Operation, q *Query) error {
		q.Filter = Filter{"state": "open"}
		return nil
	}})
	for _, state := range []string{"open", "closed"} {
		if _, err := s.AddMemory(t.Context(), NewMemory{Content: "a text", State: state}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.Search(t.Context(), Query{Text: "text"})
	if err != nil || len(r.Hits) != 1 || r.Hits[0].State != "open" {
		t.Errorf("got %+v, %v, want only what the hook's filter leaves", r.Hits, err)
	}
}

// BenchmarkHooks compares a store without hooks with one whose hooks do nothing.
func BenchmarkHooks(b *testing.B) {
	for name, hooks := range map[string][]Hooks{"none": nil, "empty": {{}}} {
		s := openHooks(b, hooks...)
		b.Run("add/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.AddMemory(b.Context(), NewMemory{Content: "a memory of a benchmark"}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("search/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Search(b.Context(), Query{Text: "benchmark", Limit: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// In a snapshot, After is called once that has ended, so that it may write.
func TestAfterASnapshotHooksMayWrite(t *testing.T) {
	var s *Store
	var after []error
	s = openHooks(t, Hooks{After: func(ctx context.Context, o Operation, r OperationResult) {
		_, err := s.AddMemory(ctx, NewMemory{Content: "someone searched"})
		after = append(after, errors.Join(r.Err, err))
	}})
	err := s.Snapshot(t.Context(), func(ctx context.Context) error {
		_, err := s.Search(ctx, Query{Text: "kettle"})
		if len(after) != 0 {
			t.Errorf("within the snapshot After is called %d times, want none", len(after))
		}
		return err
	})
	if err != nil || len(after) != 1 || after[0] != nil {
		t.Errorf("got %v, and After %v; want nil, and After once with nil", err, after)
	}
}
