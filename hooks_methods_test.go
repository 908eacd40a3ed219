package souvenir

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestEveryMethodThatWritesOrSearchesHasHooks(t *testing.T) {
	writes := []string{"Add", "Put", "Set", "Update", "Delete", "Erase", "Search", "Complete", "Restore",
		"Append", "Clear", "Empty"}
	var names []string
	for prefix, methods := range map[string]reflect.Type{"": reflect.TypeFor[*Store](),
		"Conversation.": reflect.TypeFor[*Conversation](), "Trash.": reflect.TypeFor[*Trash]()} {
		for i := range methods.NumMethod() {
			names = append(names, prefix+methods.Method(i).Name)
		}
	}
	for _, name := range names {
		_, known := hookedMethods[name]
		known = known || slices.Contains(unhookedMethods, name)
		verb := name[strings.Index(name, ".")+1:]
		if !known && slices.ContainsFunc(writes, func(w string) bool { return strings.HasPrefix(verb, w) }) {
			t.Errorf("%s may need hooks: add it to hookedMethods or, with a line in the comment of Hooks, to "+
				"unhookedMethods", name)
		}
	}
	s := openHooks(t, Hooks{})
	for name := range hookedMethods {
		var seen []string
		hooks := observing(func(o Operation, _ OperationResult) { seen = append(seen, string(o.Kind)+" "+o.Method) })
		s.options.Hooks = []Hooks{hooks}
		callHooked(t, s, name)
		method := map[string]string{"AddMemory": "AddMemories", "PutMemory": "PutMemories"}[name]
		if method == "" {
			method = name
		}
		if want := []string{string(hookedMethods[name]) + " " + method}; !slices.Equal(seen, want) {
			t.Errorf("%s: the hooks saw %q, want %q", name, seen, want)
		}
	}
}

// callHooked calls a method with valid arguments that hold the secret in every text.
func callHooked(t *testing.T, s *Store, method string) {
	t.Helper()
	if err := tryHooked(t, s, method); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

// hookedCall is a call of a method with hooks. What the method needs is stored before it, with bare, without hooks.
type hookedCall struct {
	t         *testing.T
	store     *Store
	ctx, bare context.Context
	method    string
}

// tryHooked stores, without hooks, what a method needs, and calls it.
func tryHooked(t *testing.T, s *Store, method string) error {
	t.Helper()
	call := hookedCalls[method]
	if call == nil {
		t.Fatalf("hookedCalls lacks %s, want it with a call", method)
	}
	ctx := t.Context()
	return call(s, hookedCall{t, s, ctx, context.WithValue(ctx, withoutHooks{s.shared}, true), method})
}

// must fails the test if what a method needs could not be stored.
func (c hookedCall) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("preparing %s: %v", c.method, err)
	}
}

// memory adds a memory without the secret.
func (c hookedCall) memory() (id string) {
	c.t.Helper()
	m, err := c.store.AddMemory(c.bare, NewMemory{Content: "an innocent text", ShownMetadata: map[string]any{"a": "b"}})
	c.must(err)
	return m.ID
}

// todo sets a todo without the secret.
func (c hookedCall) todo() {
	c.t.Helper()
	_, err := c.store.SetTodo(c.bare,
		NewTodo{ProjectID: "hooks", Content: strings.ReplaceAll(hookTodo, secret, "work")})
	c.must(err)
}

// turn appends a turn without the secret.
func (c hookedCall) turn() (id string) {
	c.t.Helper()
	turns, err := c.store.Conversation("chat").Append(c.bare, Turn{Content: "hello"})
	c.must(err)
	return turns[0].ID
}

// withSecret returns a memory that has the secret in every text, and a key of the method if it needs one.
func (c hookedCall) withSecret() NewMemory {
	m := NewMemory{Content: "the word is " + secret, Tags: []string{secret}, EventType: "note",
		Metadata:      map[string]any{"own": secret, "deep": map[string]any{"list": []any{secret}}},
		ShownMetadata: map[string]any{"shown": secret, "state": secret, "custom": map[string]any{"tags": secret}}}
	if strings.HasPrefix(c.method, "Put") {
		m.Key = "key of " + c.method
	}
	return m
}

// hookedCalls call each method with hooks once.
var hookedCalls = map[string]func(s *Store, c hookedCall) error{
	"AddMemory": func(s *Store, c hookedCall) error {
		_, err := s.AddMemory(c.ctx, c.withSecret())
		return err
	},
	"AddMemories": func(s *Store, c hookedCall) error {
		_, err := s.AddMemories(c.ctx, []NewMemory{c.withSecret(), c.withSecret()}, nil)
		return err
	},
	"PutMemory": func(s *Store, c hookedCall) error {
		_, err := s.PutMemory(c.ctx, c.withSecret())
		return err
	},
	"PutMemories": func(s *Store, c hookedCall) error {
		_, err := s.PutMemories(c.ctx, []NewMemory{c.withSecret(), c.withSecret()}, nil)
		return err
	},
	"SetRule": func(s *Store, c hookedCall) error {
		_, err := s.SetRule(c.ctx, NewRule{Type: RuleDo, Content: "say " + secret, Tags: []string{secret}})
		return err
	},
	"SetTodo": func(s *Store, c hookedCall) error {
		_, err := s.SetTodo(c.ctx, NewTodo{ProjectID: "hooks", Content: hookTodo, Tags: []string{secret}})
		return err
	},
	"SetIdentityMemory": func(s *Store, c hookedCall) error {
		_, err := s.SetIdentityMemory(c.ctx, IdentityMemory{Content: "I am " + secret, Nicknames: []string{secret}})
		return err
	},
	"UpdateMemory": func(s *Store, c hookedCall) error {
		_, err := s.UpdateMemory(c.ctx, c.memory(), MemoryUpdate{Content: ptr("now " + secret),
			Tags: ptr([]string{secret}), Metadata: map[string]any{"own": secret},
			ShownMetadata: map[string]any{"state": secret, "shown": secret, "custom": map[string]any{"importance": secret}}})
		return err
	},
	"UpdateMemories": func(s *Store, c hookedCall) error {
		c.memory()
		_, err := s.UpdateMemories(c.ctx, MemoriesUpdate{All: true, Change: MemoryUpdate{ShownMetadata: map[string]any{
			"many": secret}}})
		return err
	},
	"RestoreRevision": func(s *Store, c hookedCall) error {
		id := c.memory()
		_, err := s.UpdateMemory(c.bare, id, MemoryUpdate{Content: ptr("another innocent text")})
		c.must(err)
		_, err = s.RestoreRevision(c.ctx, id, 1)
		return err
	},
	"CompleteTask": func(s *Store, c hookedCall) error {
		c.todo()
		_, err := s.CompleteTask(c.ctx, TaskRef{ProjectID: "hooks", TaskID: "T1"})
		return err
	},
	"UpdateTodoSection": func(s *Store, c hookedCall) error {
		c.todo()
		_, err := s.UpdateTodoSection(c.ctx, ProjectRef{ID: "hooks"}, SectionPlan,
			TodoSectionUpdate{Content: "plan " + secret})
		return err
	},
	"DeleteMemory": func(s *Store, c hookedCall) error {
		return s.DeleteMemory(c.ctx, c.memory(), &DeletionOptions{Erase: true})
	},
	"DeleteMemories": func(s *Store, c hookedCall) error {
		c.memory()
		_, err := s.DeleteMemories(c.ctx, MemoriesDeletion{MemoryList: MemoryList{Filter: Filter{"a": "b"}}})
		return err
	},
	"DeleteRule": func(s *Store, c hookedCall) error {
		_, err := s.SetRule(c.bare, NewRule{Type: RuleDont, Content: "panic"})
		c.must(err)
		return s.DeleteRule(c.ctx, ProjectRef{}, RuleDont)
	},
	"DeleteCollection": func(s *Store, c hookedCall) error {
		_, err := s.AddCollection(c.bare, NewCollection{Name: "gone"})
		c.must(err)
		if err = s.DeleteCollection(c.ctx, "gone", nil); err != nil {
			c.must(s.DeleteCollection(c.bare, "gone", nil))
		}
		return err
	},
	"DeleteProject": func(s *Store, c hookedCall) error {
		_, err := s.AddProject(c.bare, NewProject{ID: "gone", Name: "gone"})
		c.must(err)
		if err = s.DeleteProject(c.ctx, ProjectRef{ID: "gone"}, nil); err != nil {
			c.must(s.DeleteProject(c.bare, ProjectRef{ID: "gone"}, nil))
		}
		return err
	},
	"Conversation.Append": func(s *Store, c hookedCall) error {
		_, err := s.Conversation("chat").Append(c.ctx, Turn{Content: "she said " + secret, Speaker: secret,
			ToolCalls: []any{secret}, Metadata: map[string]any{"own": secret}}, Turn{ToolCalls: secret})
		return err
	},
	"Conversation.Delete": func(s *Store, c hookedCall) error { return s.Conversation("chat").Delete(c.ctx, c.turn()) },
	"Conversation.Clear": func(s *Store, c hookedCall) error {
		c.turn()
		_, err := s.Conversation("chat").Clear(c.ctx, nil)
		return err
	},
	"Search": func(s *Store, c hookedCall) error {
		_, err := s.Search(c.ctx, Query{Text: "is it " + secret})
		return err
	},
	"SearchBatch": func(s *Store, c hookedCall) error {
		_, err := s.SearchBatch(c.ctx, []Query{{Text: "is it " + secret}, {Text: "and " + secret}})
		return err
	},
	"SearchAll": func(s *Store, c hookedCall) (err error) {
		for _, failed := range s.SearchAll(c.ctx, Query{Text: "is it " + secret}) {
			err = failed
		}
		return err
	},
	"GetContext": func(s *Store, c hookedCall) error {
		_, err := s.GetContext(c.ctx, ContextQuery{Query: "is it " + secret})
		return err
	},
	"GetModuleState": func(s *Store, c hookedCall) error {
		_, err := s.GetModuleState(c.ctx, ModuleQuery{Module: "module " + secret})
		return err
	},
}

func ptr[T any](v T) *T { return &v }

func TestHooksTellErasuresFromDeletions(t *testing.T) {
	before := false
	var after []bool
	s := openHooks(t, Hooks{
		BeforeDelete: func(_ context.Context, o Operation) error { before = o.Erase; return nil },
		After: func(_ context.Context, o Operation, _ OperationResult) {
			if o.Kind == OperationDelete {
				after = append(after, before, o.Erase)
			}
		},
	})
	for name, call := range map[string]func(o *DeletionOptions) error{
		"DeleteMemory": func(o *DeletionOptions) error {
			return s.DeleteMemory(t.Context(), mustAdd(t, s, NewMemory{Content: "old"}).ID, o)
		},
		"DeleteCollection": func(o *DeletionOptions) error {
			if _, err := s.AddCollection(t.Context(), NewCollection{Name: "old"}); err != nil {
				return err
			}
			return s.DeleteCollection(t.Context(), "old", o)
		},
		"DeleteProject": func(o *DeletionOptions) error {
			if _, err := s.AddProject(t.Context(), NewProject{ID: "old", Name: "old"}); err != nil {
				return err
			}
			return s.DeleteProject(t.Context(), ProjectRef{ID: "old"}, o)
		},
		"Conversation.Clear": func(o *DeletionOptions) error {
			_, err := s.Conversation("old").Clear(t.Context(), o)
			return err
		},
	} {
		for _, options := range []*DeletionOptions{{Erase: true}, {}, nil} {
			after = nil
			if err := call(options); err != nil {
				t.Fatalf("%s with %+v: %v", name, options, err)
			}
			erase := options != nil && options.Erase
			if want := []bool{erase, erase}; !slices.Equal(after, want) {
				t.Errorf("%s with %+v: BeforeDelete and After got Erase %v, want %v", name, options, after, want)
			}
		}
	}
}
