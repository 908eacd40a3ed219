package adk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/adk/v2/memory"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/souvenir-ai/souvenir"
	adapter "github.com/souvenir-ai/souvenir/adapters/adk"
)

func newStore(t testing.TB) *souvenir.Store {
	t.Helper()
	store, err := souvenir.Open(context.Background(), filepath.Join(t.TempDir(), "memory.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// said returns an event with one text.
func said(id, author, text string, at time.Time) *session.Event {
	role := genai.Role(genai.RoleModel)
	if author == "user" {
		role = genai.RoleUser
	}
	return &session.Event{ID: id, Author: author, Timestamp: at,
		LLMResponse: model.LLMResponse{Content: genai.NewContentFromText(text, role)}}
}

// newSession makes a session of the kit's own service with the given events.
func newSession(t testing.TB, app, user, id string, events ...*session.Event) session.Session {
	t.Helper()
	service := session.InMemoryService()
	created, err := service.Create(t.Context(), &session.CreateRequest{AppName: app, UserID: user, SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := service.AppendEvent(t.Context(), created.Session, e); err != nil {
			t.Fatal(err)
		}
	}
	return created.Session
}

func add(t testing.TB, s memory.Service, of session.Session) {
	t.Helper()
	if err := s.AddSessionToMemory(t.Context(), of); err != nil {
		t.Fatal(err)
	}
}

func search(t testing.TB, s memory.Service, app, user, query string) []memory.Entry {
	t.Helper()
	found, err := s.SearchMemory(t.Context(), &memory.SearchRequest{AppName: app, UserID: user, Query: query})
	if err != nil {
		t.Fatal(err)
	}
	return found.Memories
}

func texts(entries []memory.Entry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Content.Parts[0].Text)
	}
	return all
}

var day = time.Date(2023, 10, 1, 10, 0, 0, 0, time.UTC)

// The cases are those of the kit's own test of its in-memory service.
func TestSearchesFindWhatTheKitsOwnServiceFinds(t *testing.T) {
	s := adapter.NewMemoryService(newStore(t), &adapter.MemoryOptions{MinScore: 0.5})
	fox := said("event1", "user1", "The Quick brown fox", day)
	fox.Content.Role = genai.RoleUser
	fox.CustomMetadata = map[string]any{"key": "value", "nested": map[string]any{"state": []any{"a", 1.5, true, nil}}}
	add(t, s, newSession(t, "app1", "user1", "sess1", fox, said("", "", "jumps over the lazy dog", time.Time{})))
	add(t, s, newSession(t, "app1", "user1", "sess2", said("", "test-bot", "hello world", day.AddDate(0, 0, 1))))
	add(t, s, newSession(t, "app1", "user1", "sess3", said("", "user", "test text", time.Time{})))

	got := search(t, s, "app1", "user1", "quick hello")
	slices.SortFunc(got, func(a, b memory.Entry) int { return a.Timestamp.Compare(b.Timestamp) })
	if len(got) != 2 || got[1].ID == "" {
		t.Fatalf("got %q, want the two that match, with ids", texts(got))
	}
	want := []memory.Entry{
		{ID: "event1", Author: "user1", Content: fox.Content, Timestamp: day, CustomMetadata: fox.CustomMetadata},
		{ID: got[1].ID, Author: "test-bot", Content: genai.NewContentFromText("hello world", genai.RoleModel),
			Timestamp: day.AddDate(0, 0, 1)},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, c := range []struct{ name, app, user, query string }{
		{"another application", "other_app", "user1", "test text"},
		{"another user", "app1", "test_user", "test text"},
		{"nothing like it", "app1", "user1", "something different"},
		{"no query", "app1", "user1", ""},
		{"a blank query", "app1", "user1", " \u200b"},
		{"no user", "app1", "", "test text"},
		{"no application", "", "user1", "test text"},
	} {
		if got := search(t, s, c.app, c.user, c.query); len(got) != 0 {
			t.Errorf("%s: got %q, want nothing", c.name, texts(got))
		}
	}
}

func TestASessionCanBeAddedAgain(t *testing.T) {
	store := newStore(t)
	s := adapter.NewMemoryService(store, nil)
	events := []*session.Event{said("e1", "user", "The ferry leaves on Thursdays.", day), said("", "guide", "Noted.", day),
		said("", "guide", "Noted.", day), said(strings.Repeat("x", 300), "user", "Thanks.", day.Add(time.Hour))}
	count := func() int {
		info, err := s.View("travel", "anna").Conversation("s").Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.Turns
	}
	for range 3 {
		add(t, s, newSession(t, "travel", "anna", "s", events...))
	}
	add(t, s, newSession(t, "travel", "anna", "s", events[1:]...)) // the end alone
	if got := count(); got != len(events) {
		t.Errorf("got %d turns, want %d", got, len(events))
	}
	events = append(events, said("e5", "user", "And back on Sundays.", day.Add(2*time.Hour)))
	add(t, s, newSession(t, "travel", "anna", "s", events...))
	if got := count(); got != len(events) {
		t.Errorf("after one more: got %d turns, want %d", got, len(events))
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := s.AddSessionToMemory(t.Context(), newSession(t, "travel", "anna", "s", events...)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := count(); got != len(events) {
		t.Errorf("added at once: got %d turns, want %d", got, len(events))
	}
}

func TestOnlyWhatWasSaidIsStored(t *testing.T) {
	s := adapter.NewMemoryService(newStore(t), &adapter.MemoryOptions{MinScore: -1, Limit: 100})
	of := func(parts ...*genai.Part) *session.Event {
		return &session.Event{Author: "guide", Timestamp: day,
			LLMResponse: model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: parts}}}
	}
	long := strings.Repeat("渡轮", 1<<18)
	add(t, s, newSession(t, "travel", "anna", "s", &session.Event{}, of(), of(nil), of(genai.NewPartFromText(" \n\u200b")),
		of(genai.NewPartFromFunctionCall("search", map[string]any{"query": "ferry"})),
		of(&genai.Part{Text: "The user wants a ferry.", Thought: true}),
		of(genai.NewPartFromText("The ferry"), genai.NewPartFromBytes([]byte{1}, "image/png"),
			genai.NewPartFromText("to Oslo")),
		of(genai.NewPartFromText("nul \x00 and \xff bytes")), of(genai.NewPartFromText(long))))
	got := texts(search(t, s, "travel", "anna", "ferry"))
	for i := range got {
		got[i] = got[i][:min(len(got[i]), 30)]
	}
	slices.Sort(got)
	want := []string{"The ferry\nto Oslo", "nul \ufffd and \ufffd bytes", long[:30]}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	add(t, s, newSession(t, "travel", "ben", "empty"))
	if got := search(t, s, "travel", "ben", "ferry"); len(got) != 0 {
		t.Errorf("an empty session: got %q, want nothing", texts(got))
	}
}

func TestUsersAndApplicationsAreApart(t *testing.T) {
	store := newStore(t)
	s := adapter.NewMemoryService(store, nil)
	for _, of := range []struct{ app, user string }{{"travel", "anna"}, {"travel", "ben"}, {"shop", "anna"}} {
		add(t, s, newSession(t, of.app, of.user, "s", said("e", "user", "我的护照号是 "+of.app+"-"+of.user, day)))
	}
	for _, of := range []struct{ app, user string }{{"travel", "anna"}, {"travel", "ben"}, {"shop", "anna"}} {
		got := texts(search(t, s, of.app, of.user, "护照号"))
		if want := []string{"我的护照号是 " + of.app + "-" + of.user}; !slices.Equal(got, want) {
			t.Errorf("%s of %s: got %q, want %q", of.user, of.app, got, want)
		}
	}
	if err := s.AddSessionToMemory(t.Context(), anonymous{newSession(t, "travel", "x", "s", said("e", "user", "hello",
		day))}); err == nil {
		t.Error("a session without a user: got no error, want one")
	}
	if n, err := s.View("travel", "anna").Conversation("s").Clear(t.Context(), nil); n != 1 || err != nil {
		t.Errorf("Clear: got %d, %v, want 1", n, err)
	}
	if got := search(t, s, "travel", "anna", "护照号"); len(got) != 0 {
		t.Errorf("after the deletion: got %q, want nothing", texts(got))
	}
	if got := search(t, s, "travel", "ben", "护照号"); len(got) != 1 {
		t.Errorf("of another user after the deletion: got %q, want one", texts(got))
	}
	shared := adapter.NewMemoryService(store, &adapter.MemoryOptions{Access: func(_, user string) souvenir.Access {
		return souvenir.Access{User: user}
	}})
	add(t, shared, newSession(t, "travel", "anna", "s", said("e", "user", "Tea at four.", day)))
	if got := search(t, shared, "shop", "anna", "when is tea?"); len(got) != 1 {
		t.Errorf("with an access of the program's own: got %q, want one", texts(got))
	}
}

// anonymous is a session without a user.
type anonymous struct{ session.Session }

func (anonymous) UserID() string { return "" }

func TestFactsStoredOtherwiseAreFound(t *testing.T) {
	s := adapter.NewMemoryService(newStore(t), nil)
	own := map[string]any{"source": "crm"}
	added, err := s.View("travel", "anna").AddMemory(t.Context(), souvenir.NewMemory{Content: "Anna is allergic to nuts.",
		Metadata: own})
	if err != nil {
		t.Fatal(err)
	}
	got := search(t, s, "travel", "anna", "What is Anna allergic to?")
	if len(got) != 1 || got[0].ID != added.ID || !reflect.DeepEqual(got[0].CustomMetadata, own) ||
		!got[0].Timestamp.Equal(added.CreatedAt) {
		t.Errorf("got %+v, want the memory %s with its metadata", got, added.ID)
	}
	long := "Anna's allergies \xff" + strings.Repeat("Is Anna allergic to nuts? ", souvenir.MaxQuery/26)
	if got := search(t, s, "travel", "anna", long); len(got) != 1 {
		t.Errorf("with a query of %d bytes: got %q, want the memory", len(long), texts(got))
	}
}

func TestManySessionsAndSearchesAtOnce(t *testing.T) {
	s := adapter.NewMemoryService(newStore(t), nil)
	const workers, rounds = 8, 10
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := range rounds {
				id := fmt.Sprintf("s%d-%d", w, n)
				of := newSession(t, "app", "user", id, said(id, "user", "The ferry number is "+id, day))
				if err := s.AddSessionToMemory(t.Context(), of); err != nil {
					t.Error(err)
				}
				if _, err := s.SearchMemory(t.Context(), &memory.SearchRequest{AppName: "app", UserID: "user",
					Query: "ferry"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for _, err := range s.View("app", "user").Conversations(t.Context(), souvenir.ConversationList{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != workers*rounds {
		t.Errorf("got %d sessions, want %d", n, workers*rounds)
	}
}

func TestALongSessionIsStoredWhole(t *testing.T) {
	s := adapter.NewMemoryService(newStore(t), nil)
	var events []*session.Event
	for i := range 1200 {
		at := day.Add(time.Duration(i) * time.Minute)
		events = append(events, said(fmt.Sprint(i), "user", fmt.Sprint("message ", i), at))
	}
	add(t, s, newSession(t, "app", "user", "s", events...))
	info, err := s.View("app", "user").Conversation("s").Info(t.Context())
	if err != nil || info.Turns != len(events) {
		t.Errorf("got %d turns, %v, want %d", info.Turns, err, len(events))
	}
}

func TestCancelledCallsEnd(t *testing.T) {
	s := adapter.NewMemoryService(newStore(t), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, events := range [][]*session.Event{nil, {said("e", "user", "hello", day)}} {
		if err := s.AddSessionToMemory(ctx, newSession(t, "a", "u", "s", events...)); !errors.Is(err, context.Canceled) {
			t.Errorf("%d events: got %v, want context.Canceled", len(events), err)
		}
	}
	for _, query := range []string{"", "hello"} {
		_, err := s.SearchMemory(ctx, &memory.SearchRequest{AppName: "a", UserID: "u", Query: query})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("query %q: got %v, want context.Canceled", query, err)
		}
	}
	if got := search(t, s, "a", "u", "hello"); len(got) != 0 {
		t.Errorf("got %q, want nothing", texts(got))
	}
}

// script is a model with given answers.
type script struct {
	mu       sync.Mutex
	answers  []*genai.Content
	requests []*model.LLMRequest
}

func says(text string) *genai.Content { return genai.NewContentFromText(text, genai.RoleModel) }

func calls(name string, args map[string]any) *genai.Content {
	return genai.NewContentFromFunctionCall(name, args, genai.RoleModel)
}

func (s *script) Name() string { return "script" }

func (s *script) GenerateContent(_ context.Context, r *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests = append(s.requests, r)
		if len(s.requests) > len(s.answers) {
			yield(nil, errors.New("the script has no further answer"))
			return
		}
		yield(&model.LLMResponse{Content: s.answers[len(s.requests)-1]}, nil)
	}
}

// saw reports whether the last request contains a text.
func (s *script) saw(text string) bool {
	r := s.requests[len(s.requests)-1]
	encoded, err := json.Marshal([]any{r.Contents, r.Config.SystemInstruction})
	return err == nil && strings.Contains(string(encoded), text)
}
