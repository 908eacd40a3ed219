package systemtest

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	. "github.com/souvenir-ai/souvenir"
)

// rulesVisits are the visits of the methods of rules and todos.
var rulesVisits = map[string]func(v visit){
	"SetRule": func(v visit) {
		v.onEachRule("SetRule", true, ErrInvalid, func(s *Store, p ProjectRef) (any, error) {
			return s.SetRule(v.Context(), NewRule{ProjectID: p.ID, Type: RuleDo, Content: "another rule"})
		})
		v.generalRules()
	},
	"GetRule": func(v visit) {
		v.onEachRule("GetRule", false, ErrNotFound,
			func(s *Store, p ProjectRef) (any, error) { return s.GetRule(v.Context(), p, RuleDo) })
	},
	"Rules": func(v visit) {
		v.onEachRule("Rules", false, nil, func(s *Store, p ProjectRef) (any, error) { return s.Rules(v.Context(), p) })
		v.generalRules()
	},
	"DeleteRule": func(v visit) {
		v.onEachRule("DeleteRule", true, ErrNotFound,
			func(s *Store, p ProjectRef) (any, error) { return nil, s.DeleteRule(v.Context(), p, RuleDo) })
	},
	"SetTodo": func(v visit) {
		v.onEachRule("SetTodo", true, ErrInvalid, func(s *Store, p ProjectRef) (any, error) {
			return s.SetTodo(v.Context(), NewTodo{ProjectID: p.ID, Content: five(nil)})
		})
	},
	"GetTodo": func(v visit) {
		v.onEachRule("GetTodo", false, ErrNotFound,
			func(s *Store, p ProjectRef) (any, error) { return s.GetTodo(v.Context(), p) })
	},
	"UpdateTodoSection": func(v visit) {
		v.onEachRule("UpdateTodoSection", true, ErrNotFound, func(s *Store, p ProjectRef) (any, error) {
			return s.UpdateTodoSection(v.Context(), p, SectionPlan, TodoSectionUpdate{Content: "another plan"})
		})
	},
	"CompleteTask": func(v visit) {
		v.onEachRule("CompleteTask", true, ErrNotFound, func(s *Store, p ProjectRef) (any, error) {
			return s.CompleteTask(v.Context(), TaskRef{ProjectID: p.ID, TaskID: "T1"})
		})
	},
}

// ruledProjects are projects with rules, each with one of its memories.
var ruledProjects = []struct{ owner, project, memory string }{
	{"alice", "shared", "aliceopen"}, {"alice", "secretplan", "aliceplan"}, {"eve", "shared", "eveopen"},
	{"carol", "shared", "carolown"},
}

// onEachRule calls a method on every project after adding a rule and a todo. unknown is the method's error for a
// project that does not exist, or nil for an empty answer.
func (v visit) onEachRule(what string, changes bool, unknown error, call func(*Store, ProjectRef) (any, error)) {
	v.Helper()
	v.addRules()
	for _, p := range ruledProjects {
		secret, task := "ruleof"+p.memory, "taskof"+p.memory
		before := rowsOf(v.T, v.n.store)
		ref := p.owner + "/" + p.project
		result, err := call(v.view, ProjectRef{ID: ref})
		encoded, marshalErr := json.Marshal(result)
		if marshalErr != nil {
			v.Errorf("got %v, want nil", marshalErr)
		}
		answer := string(encoded)
		seen, writable := slices.Contains(v.sees, p.memory), slices.Contains(v.changes, p.memory)
		v.check(what+" in "+ref, answer, err, ref)
		if !seen && (strings.Contains(answer, secret) || strings.Contains(answer, task)) {
			v.Errorf("%s reveals the rules of %s: %s, want none of them", what, ref, answer)
		}
		switch {
		case changes && v.access.ReadOnly:
			if !errors.Is(err, ErrReadOnly) {
				v.Errorf("%s in %s through a read-only view gives %v, want ErrReadOnly", what, ref, err)
			}
		case !seen:
			const nowhere = "unknown/nothing"
			_, want := call(v.view, ProjectRef{ID: nowhere})
			sameWords := said(err, ref) == said(want, nowhere) ||
				slices.Contains(v.access.Projects, ref) // which the view itself names
			if !sameWords || unknown == nil && err != nil || unknown != nil && !isAny(err, unknown, ErrForbidden) {
				v.Errorf("%s in %s, which cannot be seen, gives %v; in an unknown one, %v", what, ref, err, want)
			}
		case !changes || writable:
			if err != nil {
				v.Errorf("%s in %s: %v", what, ref, err)
			}
			if !changes && !strings.Contains(answer, secret) && !strings.Contains(answer, task) {
				v.Errorf("%s in %s gives %s, want %q or %q in the answer", what, ref, answer, secret, task)
			}
			continue
		case !errors.Is(err, ErrForbidden):
			v.Errorf("%s in %s, which may only be read, gives %v", what, ref, err)
		}
		if rowsOf(v.T, v.n.store) != before && changes {
			v.Errorf("%s in %s was refused and changed something, want nothing changed", what, ref)
		}
	}
}

// addRules adds a rule and a todo to each of ruledProjects.
func (v visit) addRules() {
	v.Helper()
	of := map[string][]NewMemory{}
	for _, p := range ruledProjects {
		of[p.owner] = append(of[p.owner],
			NewMemory{ProjectID: p.project, EventType: EventProjectRule, RuleType: RuleDo, Content: "ruleof" + p.memory},
			NewMemory{ProjectID: p.project, EventType: EventProjectRule, RuleType: RuleTodo,
				Content: five(map[Section]string{SectionTasks: "## Tasks\n- [ ] T1 taskof" + p.memory})})
	}
	for owner, rules := range of {
		if _, err := v.n.store.As(Access{User: owner}).AddMemories(v.Context(), rules, nil); err != nil {
			v.Fatal(err)
		}
	}
}

func said(err error, given string) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), given, "…")
}

// generalRules checks that general rules are visible to their user only, and not in a view of projects.
func (v visit) generalRules() {
	v.Helper()
	const secret = "everywhere first of all"
	alice := v.n.store.As(Access{User: "alice"})
	if _, err := alice.SetRule(v.Context(), NewRule{Type: RuleDont, Content: secret}); err != nil {
		v.Fatal(err)
	}
	r, err := v.view.Rules(v.Context(), ProjectRef{})
	if err != nil {
		v.Error(err)
	}
	if own := v.access.User == "alice" && v.access.Projects == nil; own != (r.Dont != nil && r.Dont.Content == secret) {
		v.Errorf("general rules: got %+v, want alice's secret in them: %v", r, own)
	}
}
