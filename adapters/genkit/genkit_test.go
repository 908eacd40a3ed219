package genkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core"
	"github.com/firebase/genkit/go/genkit"

	"github.com/souvenir-ai/souvenir"
	adapter "github.com/souvenir-ai/souvenir/adapters/genkit"
	"github.com/souvenir-ai/souvenir/tools"
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

func doc(text, id string) *ai.Document {
	return ai.DocumentFromText(text, map[string]any{"id": id})
}

func index(t testing.TB, d *adapter.DocStore, documents ...*ai.Document) []string {
	t.Helper()
	ids, err := d.Index(t.Context(), documents...)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// retrieve returns the texts that a retriever finds, through Genkit.
func retrieve(t testing.TB, g *genkit.Genkit, name, query string, options any) []string {
	t.Helper()
	found, err := genkit.Retrieve(t.Context(), g, ai.WithRetriever(adapter.Retriever(g, name)), ai.WithTextDocs(query),
		ai.WithConfig(options))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, d := range found.Documents {
		texts = append(texts, d.Content[0].Text)
	}
	return texts
}

func TestDocumentsAreFoundAsTheyWereIndexed(t *testing.T) {
	g := genkit.Init(t.Context())
	d := adapter.New(newStore(t), nil)
	retriever := d.DefineRetriever(g, "notes", nil)
	if got := retriever.Name(); got != "souvenir/notes" {
		t.Errorf("got the name %q, want souvenir/notes", got)
	}
	metadata := map[string]any{"id": "ferry", "page": 3.0, "state": "draft",
		"custom": map[string]any{"a": []any{"b", nil}}}
	index(t, d, ai.DocumentFromText("The ferry to Oslo leaves on Thursdays.", metadata), doc("火车星期五开往柏林。", "train"),
		&ai.Document{Content: []*ai.Part{ai.NewTextPart("Tea"), ai.NewMediaPart("image/png", "data:,"),
			ai.NewTextPart("at four.")}})

	found, err := genkit.Retrieve(t.Context(), g, ai.WithRetriever(retriever),
		ai.WithTextDocs("When does the ferry leave?"), ai.WithConfig(&adapter.RetrieverOptions{K: 1}))
	if err != nil {
		t.Fatal(err)
	}
	want := []*ai.Document{ai.DocumentFromText("The ferry to Oslo leaves on Thursdays.", metadata)}
	if !reflect.DeepEqual(found.Documents, want) {
		t.Errorf("got %+v, want %+v", found.Documents, want)
	}
	long := "When does the ferry leave? \xff" + strings.Repeat("When does the ferry leave? ", souvenir.MaxQuery/27)
	if got := retrieve(t, g, "notes", long, &adapter.RetrieverOptions{K: 1}); len(got) != 1 {
		t.Errorf("with a query of %d bytes: got %q, want one text", len(long), got)
	}
	for _, c := range []struct {
		query   string
		options any
		want    []string
	}{
		{"火车去哪里", adapter.RetrieverOptions{K: 1}, []string{"火车星期五开往柏林。"}},
		{"tea", map[string]any{"k": 1}, []string{"Tea\nat four."}},
		{"ferry", &adapter.RetrieverOptions{Filter: map[string]any{"page": map[string]any{"gte": 4}}}, nil},
		{"ferry", &adapter.RetrieverOptions{MinScore: 0.5, Filter: map[string]any{"page": 3}},
			[]string{"The ferry to Oslo leaves on Thursdays."}},
		{"weather in Paris", &adapter.RetrieverOptions{MinScore: 0.5}, nil},
		{"", nil, nil},
		{" \u200b", nil, nil},
	} {
		if got := retrieve(t, g, "notes", c.query, c.options); !slices.Equal(got, c.want) {
			t.Errorf("%q with %+v: got %q, want %q", c.query, c.options, got, c.want)
		}
	}
	for _, bad := range []any{map[string]any{"limit": 3}, map[string]any{"k": 1000}, map[string]any{"k": "many"}} {
		if _, err := genkit.Retrieve(t.Context(), g, ai.WithRetriever(retriever), ai.WithTextDocs("tea"),
			ai.WithConfig(bad)); err == nil {
			t.Errorf("options %v: got no error, want one", bad)
		}
	}
}

func TestDocumentsCanBeIndexedAgainAndDeleted(t *testing.T) {
	store := newStore(t)
	d := adapter.New(store, nil)
	count := func() (n int) {
		for _, err := range store.Memories(t.Context(), souvenir.MemoryList{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	plain := ai.DocumentFromText("Tea at four.", nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := d.Index(t.Context(), doc("The ferry leaves on Thursdays.", "ferry"), plain, plain); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := count(); got != 2 {
		t.Errorf("got %d documents, want 2", got)
	}
	ids := index(t, d, doc("The ferry leaves on Sundays.", "ferry"), plain)
	if len(ids) != 2 || ids[0] != "ferry" || count() != 2 {
		t.Errorf("after a change: got the ids %q of %d documents, want ferry and another", ids, count())
	}
	other, err := store.AddMemory(t.Context(), souvenir.NewMemory{Content: "of another project", ProjectID: "p",
		Key: "ferry"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ids  []string
		want int
	}{{nil, 0}, {[]string{"unknown"}, 0}, {ids, 2}, {ids, 0}} {
		if n, err := d.Delete(t.Context(), c.ids...); n != c.want || err != nil {
			t.Errorf("Delete(%q): got %d, %v, want %d", c.ids, n, err, c.want)
		}
	}
	if _, err := store.GetMemory(t.Context(), other.ID); err != nil || count() != 1 {
		t.Errorf("got %d memories, %v, want the one of another project", count(), err)
	}
	many := make([]string, 1100)
	documents := make([]*ai.Document, len(many))
	for i := range many {
		many[i] = fmt.Sprint("n", i)
		documents[i] = doc(fmt.Sprint("note ", i), many[i])
	}
	index(t, d, documents...)
	if n, err := d.Delete(t.Context(), many...); n != len(many) || err != nil {
		t.Errorf("got %d deleted, %v, want %d", n, err, len(many))
	}
}

func TestDocumentsWithoutTextAreRefused(t *testing.T) {
	store := newStore(t)
	d := adapter.New(store, nil)
	for _, bad := range []*ai.Document{nil, {}, doc("", "a"), doc(" \n\u200b", "a"),
		{Content: []*ai.Part{ai.NewMediaPart("image/png", "data:,")}}, doc("x", strings.Repeat("x", 600)),
		doc(strings.Repeat("x", souvenir.MaxContent+1), "a"), ai.DocumentFromText("x", map[string]any{"f": func() {}})} {
		if _, err := d.Index(t.Context(), doc("good", "good"), bad); err == nil {
			t.Errorf("%.60v: got no error, want one", bad)
		}
	}
	if ids := index(t, d); len(ids) != 0 {
		t.Errorf("no documents: got the ids %q, want none", ids)
	}
	for m, err := range store.Memories(t.Context(), souvenir.MemoryList{}) {
		t.Errorf("got %q, %v, want nothing stored", m.Content, err)
	}
}

// The user comes from the context of the flow, as Genkit's handlers set it.
func TestUsersHaveDocumentsAndToolsOfTheirOwn(t *testing.T) {
	store := newStore(t)
	d := adapter.New(store, &adapter.Config{View: func(ctx context.Context) (*souvenir.Store, error) {
		user, ok := core.FromContext(ctx)["user"].(string)
		if !ok {
			return nil, errors.New("no user in the context")
		}
		return store.As(souvenir.Access{User: user}), nil
	}})
	g := genkit.Init(t.Context(), genkit.WithDefaultModel("test/script"))
	retriever := d.DefineRetriever(g, "notes", nil)
	toolset, err := d.DefineTools(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	as := func(user string) context.Context {
		return core.WithActionContext(t.Context(), core.ActionContext{"user": user})
	}
	if _, err := d.Index(as("anna"), doc("Anna's ferry leaves on Thursdays.", "ferry")); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]int{"anna": 1, "ben": 0} {
		found, err := genkit.Retrieve(as(user), g, ai.WithRetriever(retriever), ai.WithTextDocs("ferry"))
		if err != nil || len(found.Documents) != want {
			t.Errorf("%s: got %v, %v, want %d documents", user, found, err, want)
		}
	}
	model := script(g, calls("memory", map[string]any{"action": "search", "query": "ferry"}), says("done"))
	if _, err := genkit.Generate(as("ben"), g, ai.WithTools(toolset...), ai.WithPrompt("hello")); err != nil {
		t.Fatal(err)
	}
	if model.saw("Thursdays") {
		t.Error("ben's model saw a document of anna's, want none")
	}
	if n, err := d.Delete(as("ben"), "ferry"); n != 0 || err != nil {
		t.Errorf("ben deletes: got %d, %v, want 0", n, err)
	}
	for name, call := range map[string]func() error{
		"Index":  func() error { _, err := d.Index(t.Context(), doc("x", "x")); return err },
		"Delete": func() error { _, err := d.Delete(t.Context(), "x"); return err },
		"Retrieve": func() error {
			_, err := d.Retrieve(t.Context(), &ai.RetrieverRequest{Query: doc("x", "x")})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "no user") {
			t.Errorf("%s without a user: got %v, want an error", name, err)
		}
	}
}

func TestACollectionOrProjectLimitsDocuments(t *testing.T) {
	store := newStore(t)
	if _, err := store.AddCollection(t.Context(), souvenir.NewCollection{Name: "manuals"}); err != nil {
		t.Fatal(err)
	}
	g := genkit.Init(t.Context())
	for name, config := range map[string]*adapter.Config{"all": nil, "manuals": {Collection: "manuals"},
		"bridge": {Project: souvenir.ProjectRef{ID: "bridge"}}} {
		d := adapter.New(store, config)
		d.DefineRetriever(g, name, nil)
		index(t, d, doc("The ferry of "+name, "ferry"))
	}
	for name, want := range map[string]int{"all": 3, "manuals": 1, "bridge": 1} {
		if got := retrieve(t, g, name, "ferry", nil); len(got) != want {
			t.Errorf("%s: got %q, want %d", name, got, want)
		}
	}
	for _, elsewhere := range []any{souvenir.DefaultCollection, []any{souvenir.DefaultCollection, "manuals"},
		map[string]any{"ne": "x"}} {
		options := &adapter.RetrieverOptions{Filter: map[string]any{"collection_name": elsewhere}}
		for _, got := range retrieve(t, g, "manuals", "ferry", options) {
			if want := "The ferry of manuals"; got != want {
				t.Errorf("a request for collection %v: got %q, want only %q", elsewhere, got, want)
			}
		}
	}
	manuals := adapter.New(store, &adapter.Config{Collection: "manuals"})
	if n, err := manuals.Delete(t.Context(), "ferry"); n != 1 || err != nil {
		t.Errorf("got %d deleted, %v, want 1", n, err)
	}
}

func TestCancelledCallsEnd(t *testing.T) {
	d := adapter.New(newStore(t), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Index(ctx, doc("x", "x")); !errors.Is(err, context.Canceled) {
		t.Errorf("Index: got %v, want context.Canceled", err)
	}
	for _, query := range []string{"", "x"} {
		if _, err := d.Retrieve(ctx, &ai.RetrieverRequest{Query: doc(query, "q")}); !errors.Is(err, context.Canceled) {
			t.Errorf("Retrieve %q: got %v, want context.Canceled", query, err)
		}
	}
	if _, err := d.Delete(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("Delete: got %v, want context.Canceled", err)
	}
}

func TestToolsCanBeChosenAndLearnFromErrors(t *testing.T) {
	g := genkit.Init(t.Context(), genkit.WithDefaultModel("test/script"))
	d := adapter.New(newStore(t), nil)
	toolset, err := d.DefineTools(g, &adapter.ToolOptions{Only: []string{"rules", "memory"}, Prefix: "s_"})
	if err != nil {
		t.Fatal(err)
	}
	model := script(g, calls("s_memory", map[string]any{"action": "retrieve", "id": "nowhere"}),
		calls("s_memory", map[string]any{"action": "store", "content": "周四坐船"}),
		calls("s_memory", map[string]any{"action": "search", "query": "船"}), says("done"))
	if _, err := genkit.Generate(t.Context(), g, ai.WithTools(toolset...), ai.WithPrompt("hello")); err != nil {
		t.Fatal(err)
	}
	if !model.saw(`"error":"memory id`) || !model.saw("周四坐船") {
		t.Errorf("got the messages %s, want the error and the memory", model.last)
	}
	readOnly, err := d.DefineTools(g, &adapter.ToolOptions{Tools: &tools.Options{ReadOnly: true}})
	if err != nil || len(readOnly) != 4 {
		t.Errorf("for reading: got %d tools, %v, want 4", len(readOnly), err)
	}
	for _, bad := range []adapter.ToolOptions{{Only: []string{"memories"}}, {Only: []string{"memory"}},
		{Only: []string{"todo", "rules"}, Prefix: "s_"}} {
		if _, err := d.DefineTools(g, &bad); !errors.Is(err, souvenir.ErrInvalid) {
			t.Errorf("%+v: got %v, want ErrInvalid", bad, err)
		}
	}
	if genkit.LookupTool(g, "s_todo") != nil {
		t.Error("got a tool s_todo after an error, want none")
	}
}

// scripted is a model with given answers.
type scripted struct {
	mu      sync.Mutex
	answers []*ai.Part
	last    []byte // messages of the last request
}

func says(text string) *ai.Part { return ai.NewTextPart(text) }

func calls(name string, input map[string]any) *ai.Part {
	return ai.NewToolRequestPart(&ai.ToolRequest{Name: name, Input: input})
}

// script defines the model test/script.
func script(g *genkit.Genkit, answers ...*ai.Part) *scripted {
	s := &scripted{answers: answers}
	genkit.DefineModel(g, "test/script", &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true,
		Context: true}}, func(_ context.Context, r *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		encoded, err := json.Marshal([]any{r.Messages, r.Docs})
		if err != nil || len(s.answers) == 0 {
			return nil, errors.New("the script has no further answer")
		}
		answer := s.answers[0]
		s.answers, s.last = s.answers[1:], encoded
		return &ai.ModelResponse{Request: r, Message: ai.NewModelMessage(answer), FinishReason: ai.FinishReasonStop}, nil
	})
	return s
}

func (s *scripted) saw(text string) bool { return strings.Contains(string(s.last), text) }
