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

// tryHooked stores, without hooks, what a method needs, and calls it.
func tryHooked(t *testing.T, s *Store, method string) error {
	t.Helper()
	ctx := t.Context()
	bare := context.WithValue(ctx, withoutHooks{s.shared}, true)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("preparing %s: %v", method, err)
		}
	}
	add := func() string {
		m, err := s.AddMemory(bare, NewMemory{Content: "an innocent text", ShownMetadata: map[string]any{"a": "b"}})
		must(err)
		return m.ID
	}
	new := NewMemory{Content: "the word is " + secret, Tags: []string{secret}, EventType: "note",
		Metadata:      map[string]any{"own": secret, "deep": map[string]any{"list": []any{secret}}},
		ShownMetadata: map[string]any{"shown": secret, "state": secret, "custom": map[string]any{"tags": secret}}}
	keyed := new
	keyed.Key = "key of " + method
	project := ProjectRef{ID: "hooks"}
	var err error
	switch method {
	case "AddMemory":
		_, err = s.AddMemory(ctx, new)
	case "AddMemories":
		_, err = s.AddMemories(ctx, []NewMemory{new, new}, nil)
	case "PutMemory":
		_, err = s.PutMemory(ctx, keyed)
	case "PutMemories":
		_, err = s.PutMemories(ctx, []NewMemory{keyed, keyed}, nil)
	case "SetRule":
		_, err = s.SetRule(ctx, NewRule{Type: RuleDo, Content: "say " + secret, Tags: []string{secret}})
	case "SetTodo":
		_, err = s.SetTodo(ctx, NewTodo{ProjectID: "hooks", Content: hookTodo, Tags: []string{secret}})
	case "SetIdentityMemory":
		_, err = s.SetIdentityMemory(ctx, IdentityMemory{Content: "I am " + secret, Nicknames: []string{secret}})
	case "UpdateMemory":
		_, err = s.UpdateMemory(ctx, add(), MemoryUpdate{Content: ptr("now " + secret), Tags: ptr([]string{secret}),
			Metadata: map[string]any{"own": secret}, ShownMetadata: map[string]any{"state": secret, "shown": secret,
				"custom": map[string]any{"importance": secret}}})
	case "UpdateMemories":
		add()
		_, err = s.UpdateMemories(ctx, MemoriesUpdate{All: true, Change: MemoryUpdate{ShownMetadata: map[string]any{
			"many": secret}}})
	case "RestoreRevision":
		id := add()
		_, err = s.UpdateMemory(bare, id, MemoryUpdate{Content: ptr("another innocent text")})
		must(err)
		_, err = s.RestoreRevision(ctx, id, 1)
	case "UpdateTodoSection", "CompleteTask":
		_, err = s.SetTodo(bare, NewTodo{ProjectID: "hooks", Content: strings.ReplaceAll(hookTodo, secret, "work")})
		must(err)
		if method == "CompleteTask" {
			_, err = s.CompleteTask(ctx, TaskRef{ProjectID: "hooks", TaskID: "T1"})
		} else {
			_, err = s.UpdateTodoSection(ctx, project, SectionPlan, TodoSectionUpdate{Content: "plan " + secret})
		}
	case "DeleteMemory":
		err = s.DeleteMemory(ctx, add())
	case "EraseMemory":
		err = s.EraseMemory(ctx, add())
	case "DeleteMemories":
		add()
		_, err = s.DeleteMemories(ctx, MemoriesDeletion{MemoryList: MemoryList{Filter: Filter{"a": "b"}}})
	case "DeleteRule":
		_, err = s.SetRule(bare, NewRule{Type: RuleDont, Content: "panic"})
		must(err)
		err = s.DeleteRule(ctx, ProjectRef{}, RuleDont)
	case "DeleteCollection":
		_, err = s.AddCollection(bare, NewCollection{Name: "gone"})
		must(err)
		err = s.DeleteCollection(ctx, "gone", nil)
		if err != nil {
			must(s.DeleteCollection(bare, "gone", nil))
		}
	case "DeleteProject":
		_, err = s.AddProject(bare, NewProject{ID: "gone", Name: "gone"})
		must(err)
		err = s.DeleteProject(ctx, ProjectRef{ID: "gone"}, nil)
		if err != nil {
			must(s.DeleteProject(bare, ProjectRef{ID: "gone"}, nil))
		}
	case "Conversation.Append":
		_, err = s.Conversation("chat").Append(ctx, Turn{Content: "she said " + secret, Speaker: secret,
			ToolCalls: []any{secret}, Metadata: map[string]any{"own": secret}}, Turn{ToolCalls: secret})
	case "Conversation.Delete", "Conversation.Clear":
		turns, e := s.Conversation("chat").Append(bare, Turn{Content: "hello"})
		must(e)
		if method == "Conversation.Clear" {
			_, err = s.Conversation("chat").Clear(ctx, nil)
		} else {
			err = s.Conversation("chat").Delete(ctx, turns[0].ID)
		}
	case "Search":
		_, err = s.Search(ctx, Query{Text: "is it " + secret})
	case "SearchBatch":
		_, err = s.SearchBatch(ctx, []Query{{Text: "is it " + secret}, {Text: "and " + secret}})
	case "SearchAll":
		for _, failed := range s.SearchAll(ctx, Query{Text: "is it " + secret}) {
			err = failed
		}
	case "GetContext":
		_, err = s.GetContext(ctx, ContextQuery{Query: "is it " + secret})
	case "GetModuleState":
		_, err = s.GetModuleState(ctx, ModuleQuery{Module: "module " + secret})
	default:
		t.Fatalf("callHooked does not know %s", method)
	}
	return err
}

func ptr[T any](v T) *T { return &v }
