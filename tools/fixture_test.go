package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/internal/testing/storetest"
	"github.com/souvenir-ai/souvenir/tools"
)

// world is a store with some people in it:
//
//   - anna owns the project bridge (shared) and the project vault (not shared), and has memories outside of
//     projects;
//   - ben is a reader of bridge, carl a writer; neither has access to anything else of anna's;
//   - dora has her own memories and no access to bridge.
//
// Words that begin with "secret" must never reach the wrong persona; persona.never lists them.
type world struct {
	*testing.T
	store *souvenir.Store
	ids   map[string]string // replacements for {name} in arguments
}

// persona calls tools, and must never see some words.
type persona struct {
	access souvenir.Access
	scopes []souvenir.Scope // nil: all
	never  []string
}

const (
	secretDiary  = "secretdiary"  // anna's, in no project
	secretVault  = "secretvault"  // anna's, in the project vault
	secretRecipe = "secretrecipe" // dora's
	granite      = "granite"      // in the project bridge
)

var personas = map[string]persona{
	"owner":    {access: souvenir.Access{User: "anna"}, never: []string{secretRecipe}},
	"reader":   {access: souvenir.Access{User: "ben"}, never: []string{secretDiary, secretVault, secretRecipe}},
	"writer":   {access: souvenir.Access{User: "carl"}, never: []string{secretDiary, secretVault, secretRecipe}},
	"stranger": {access: souvenir.Access{User: "dora"}, never: []string{secretDiary, secretVault, granite}},
	"limited": {access: souvenir.Access{User: "anna", Projects: []string{"p-bridge"}},
		never: []string{secretDiary, secretVault, secretRecipe}},
	"nothing": {access: souvenir.Access{User: "anna", Projects: []string{}},
		never: []string{secretDiary, secretVault, secretRecipe, granite}},
	"read-only": {access: souvenir.Access{User: "anna", ReadOnly: true}, never: []string{secretRecipe}},
	"memories for reading": {
		access: souvenir.Access{User: "anna", ReadOnly: true}, scopes: []souvenir.Scope{souvenir.ScopeMemoryRead},
		never: []string{secretRecipe},
	},
	"files": {
		access: souvenir.Access{User: "anna"}, scopes: []souvenir.Scope{souvenir.ScopeFilesRead, souvenir.ScopeFilesWrite},
		never: []string{secretDiary, secretVault, secretRecipe, granite},
	},
}

const bridgeTodo = "## Constitution\nTests first.\n\n## Spec\nA bridge of granite.\n\n## Plan\nStone by stone.\n\n## " +
	"Tasks\n- [x] T1 measure the river\n- [ ] T2 order granite\n- [ ] T12 open the bridge\n\n## Gaps\nWho pays?\n"

// template returns a file of the world, and the ids in it.
var template = sync.OnceValues(func() (made struct {
	bytes []byte
	ids   map[string]string
}, err error) {
	folder, err := os.MkdirTemp("", "souvenir-tools")
	if err != nil {
		return made, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "template.db")
	made.ids, err = makeTemplate(context.Background(), path)
	if err == nil {
		made.bytes, err = os.ReadFile(path)
	}
	return made, err
})

// filling fills a store, until the first error, and notes the ids of what it added by their names.
type filling struct {
	ctx   context.Context
	store *souvenir.Store
	anna  *souvenir.Store
	ids   map[string]string
	err   error
}

func makeTemplate(ctx context.Context, path string) (ids map[string]string, err error) {
	store, err := souvenir.Open(ctx, path, &souvenir.Options{Embedder: storetest.Words{}})
	if err != nil {
		return nil, err
	}
	f := filling{ctx: ctx, store: store, anna: store.As(souvenir.Access{User: "anna"}), ids: map[string]string{}}
	f.memories()
	f.rules()
	f.files()
	f.members()
	return f.ids, errors.Join(f.err, store.Close())
}

func (f *filling) step(name string, of func() (string, error)) {
	if f.err == nil {
		f.ids[name], f.err = of()
	}
}

func (f *filling) add(name string, s *souvenir.Store, m souvenir.NewMemory) {
	f.step(name, func() (string, error) {
		stored, err := s.AddMemory(f.ctx, m)
		return stored.ID, err
	})
}

func (f *filling) memories() {
	for _, c := range []string{"work", "empty"} {
		f.step(c, func() (string, error) {
			added, err := f.anna.AddCollection(f.ctx, souvenir.NewCollection{Name: c, Description: "anna's " + c})
			return added.Name, err
		})
	}
	f.step("bridge", func() (string, error) {
		p, err := f.anna.AddProject(f.ctx, souvenir.NewProject{ID: "p-bridge", Name: "Bridge"})
		return p.ID, err
	})
	f.add("diary", f.anna, souvenir.NewMemory{Content: secretDiary + " of anna",
		ShownMetadata: map[string]any{"module_name": "pillars"}})
	f.add("vault", f.anna, souvenir.NewMemory{Content: secretVault + " of anna", ProjectID: "p-vault",
		EventType: "project-main", State: "active"})
	f.add("identity", f.anna, souvenir.NewMemory{Content: "I am Sam, " + secretDiary, EventType: "IDENTITY"})
	f.add("pillars", f.anna, souvenir.NewMemory{
		Content: "The pillars are of granite.", ProjectID: "p-bridge", Collection: "work", EventType: "decision",
		State: "active", Importance: "high",
		Tags: []string{"pillars", "stone"}, ShownMetadata: map[string]any{"architect": "Eva"},
	})
	f.add("main", f.anna, souvenir.NewMemory{
		Content: "The bridge of granite spans the river.", ProjectID: "p-bridge", Collection: "work",
		EventType: "project-main", State: "active",
		Related: []string{f.ids["pillars"], f.ids["diary"]},
	})
	f.add("case", f.anna, souvenir.NewMemory{Content: "Which granite to order", ProjectID: "p-bridge",
		EventType: "conversation", State: "active"})
	f.add("short", f.anna, souvenir.NewMemory{Content: "Polish the granite", ProjectID: "p-bridge", Classification: "do"})
	f.add("recipe", f.store.As(souvenir.Access{User: "dora"}), souvenir.NewMemory{Content: secretRecipe + " of dora"})
}

func (f *filling) rules() {
	f.step("rule", func() (string, error) {
		r, err := f.anna.SetRule(f.ctx, souvenir.NewRule{ProjectID: "p-bridge", Type: "do", Content: "Use granite."})
		return r.ID, err
	})
	f.step("general", func() (string, error) {
		r, err := f.anna.SetRule(f.ctx, souvenir.NewRule{Type: "dont", Content: "Do not tell of the " + secretDiary})
		return r.ID, err
	})
	f.step("todo", func() (string, error) {
		t, err := f.anna.SetTodo(f.ctx, souvenir.NewTodo{ProjectID: "p-bridge", Content: bridgeTodo})
		return t.ID, err
	})
}

func (f *filling) files() {
	for name, memory := range map[string]string{"plan": "main", "letter": "diary"} {
		f.step(name, func() (string, error) {
			content := name + " for anna"
			added, err := f.anna.AddFile(f.ctx, souvenir.NewFile{Filename: name + ".txt", MemoryID: f.ids[memory]},
				strings.NewReader(content))
			return added.ID, err
		})
	}
	f.step("loose", func() (string, error) {
		added, err := f.anna.AddFile(f.ctx, souvenir.NewFile{Filename: "loose.txt"}, strings.NewReader("pages"))
		return added.ID, err
	})
}

func (f *filling) members() {
	for user, role := range map[string]souvenir.MemberRole{"ben": "reader", "carl": "writer"} {
		f.step(user, func() (string, error) {
			if _, err := f.store.Accounts().AddUser(f.ctx, souvenir.NewUser{ID: user, Name: user}); err != nil {
				return "", err
			}
			m, err := f.store.AddMember(f.ctx,
				souvenir.NewMember{Project: souvenir.ProjectRef{ID: f.anna.Access().User + "/p-bridge"}, User: user, Role: role})
			return m.User, err
		})
	}
}

// newWorld makes a world of the test's own.
func newWorld(t *testing.T) *world {
	t.Helper()
	made, err := template()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "world.db")
	if err := os.WriteFile(path, made.bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := souvenir.Open(t.Context(), path, &souvenir.Options{Embedder: storetest.Words{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &world{t, store, made.ids}
}

// set returns the tools for a persona.
func (w *world) set(who string) *tools.Set {
	w.Helper()
	p, ok := personas[who]
	if !ok {
		w.Fatalf("got persona %q, want a known one", who)
	}
	var options *tools.Options
	if p.scopes != nil {
		options = &tools.Options{Allows: souvenir.Principal{Scopes: p.scopes}.Allows}
	}
	return tools.New(w.store.As(p.access), options)
}

// fill replaces {name} by ids.
func (w *world) fill(arguments string) string {
	for name, id := range w.ids {
		arguments = strings.ReplaceAll(arguments, "{"+name+"}", id)
	}
	return arguments
}

// call calls a tool as a persona and returns the result decoded from JSON. It fails the test if the result contains
// words that the persona must never see.
func (w *world) call(who, tool, arguments string) (result map[string]any, err error) {
	w.Helper()
	arguments = w.fill(arguments)
	answer, err := w.set(who).Call(w.Context(), tool, json.RawMessage(arguments))
	text := fmt.Sprint(err)
	if err == nil {
		encoded, err := json.Marshal(answer)
		if err != nil {
			w.Fatalf("%s %s: the result cannot be encoded: %v", tool, arguments, err)
		}
		text = string(encoded)
		if err := json.Unmarshal(encoded, &result); err != nil || result == nil {
			w.Fatalf("%s %s: got %v and %s, want no error and a JSON object", tool, arguments, err,
				encoded)
		}
	} else {
		var known *souvenir.Error
		if !errors.As(err, &known) || known.Kind == souvenir.KindInternal {
			w.Errorf("%s %s as %s: got %v (%[4]T), want an error that callers can act on, not of kind %[5]v", tool, arguments,
				who, err, souvenir.KindInternal)
		}
	}
	for _, secret := range personas[who].never {
		if strings.Contains(text, secret) && !strings.Contains(arguments, secret) {
			w.Errorf("%s %s as %s: got %s, want nothing that contains %s", tool, arguments, who, text, secret)
		}
	}
	return result, err
}

// must calls a tool, which must succeed.
func (w *world) must(who, tool, arguments string) map[string]any {
	w.Helper()
	result, err := w.call(who, tool, arguments)
	if err != nil {
		w.Fatalf("%s %s as %s: %v", tool, arguments, who, err)
	}
	return result
}

// at returns the value at a path in a JSON value, such as "results.0.memories.0.id", or nil.
func at(value any, path string) any {
	for step := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// contents returns the contents of all memories in a search result, by rank.
func contents(result map[string]any) []string {
	type ranked struct {
		rank    float64
		content string
	}
	var all []ranked
	groups, _ := result["results"].([]any)
	for _, g := range groups {
		memories, _ := at(g, "memories").([]any)
		for _, m := range memories {
			rank, _ := at(m, "rank").(float64)
			content, _ := at(m, "content").(string)
			all = append(all, ranked{rank, content})
		}
	}
	slices.SortFunc(all, func(a, b ranked) int { return int(a.rank - b.rank) })
	list := []string{}
	for _, r := range all {
		list = append(list, r.content)
	}
	return list
}

// scenario is a call and its expected result.
type scenario struct {
	name string
	who  string // empty: owner
	tool string
	args string // with {name} for ids

	kind     souvenir.Kind // of the error; empty: it succeeds
	argument string        // the error's
	says     []string      // what the error or, without one, the warnings must contain

	want  map[string]any // paths in the result, and their values: {name} is an id; nil is nothing or null
	never []string       // what must not appear
}

func (w *world) check(s scenario) {
	w.Helper()
	who := s.who
	if who == "" {
		who = "owner"
	}
	result, err := w.call(who, s.tool, s.args)
	said := fmt.Sprint(result["warnings"])
	text, _ := json.Marshal(result)
	if err != nil {
		said = err.Error()
		text = []byte(said)
	}
	var known *souvenir.Error
	if errors.As(err, &known) {
		if known.Kind != s.kind {
			w.Errorf("the kind of the error is %q, want %q: %v", known.Kind, s.kind, err)
		}
		if known.Argument != s.argument {
			w.Errorf("the argument of the error is %q, want %q: %v", known.Argument, s.argument, err)
		}
	} else if s.kind != "" {
		w.Errorf("it succeeds with %s, want an error of kind %q", text, s.kind)
	}
	for _, part := range s.says {
		if !strings.Contains(said, w.fill(part)) {
			w.Errorf("got %s, want one that contains %q", said, w.fill(part))
		}
	}
	if len(s.says) == 0 && err == nil && len(said) > len("[]") && said != "<nil>" {
		w.Errorf("got the warnings %s, want none", said)
	}
	for path, want := range s.want {
		got := at(result, path)
		gotJSON, _ := json.Marshal(got)
		wantJSON, _ := json.Marshal(want)
		if string(gotJSON) != w.fill(string(wantJSON)) {
			w.Errorf("%s is %s, want %s; the whole: %s", path, gotJSON, wantJSON, text)
		}
	}
	for _, part := range s.never {
		if strings.Contains(string(text), w.fill(part)) {
			w.Errorf("%q appears: %s, want it not in the text", w.fill(part), text)
		}
	}
}

// runScenarios runs each scenario in a world of its own.
func runScenarios(t *testing.T, scenarios []scenario) {
	t.Helper()
	runPart(t, 2, scenarios)
}

// runPart runs every quick-th scenario, and all of them in the long form.
func runPart(t *testing.T, quick int, scenarios []scenario) {
	t.Helper()
	for i, s := range scenarios {
		if longtest.Part(i, 1, quick) {
			t.Run(s.name, func(t *testing.T) { newWorld(t).check(s) })
		}
	}
}

func encode(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// newCancelled returns a context that has ended.
func newCancelled(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx, cancel
}
