package systemtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
)

func mustSetRule(t *testing.T, s *Store, r NewRule) StoredRule {
	t.Helper()
	stored, err := s.SetRule(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func TestARuleOfASharedProjectIsOneForAllItsPeople(t *testing.T) {
	onEachEngine(t, aRuleOfASharedProjectIsOneForAllItsPeople)
}

func aRuleOfASharedProjectIsOneForAllItsPeople(t *testing.T, empty database) {
	n := openNeighbourhood(t, buildNeighbourhood(t, empty), 0)
	alice, carol := n.store.As(Access{User: "alice"}), n.store.As(Access{User: "carol"})
	dave, bob := n.store.As(Access{User: "dave"}), n.store.As(Access{User: "bob"})
	first := mustSetRule(t, alice, NewRule{ProjectID: "shared", Type: RuleDo, Content: "by alice"})
	second := mustSetRule(t, carol, NewRule{ProjectID: "alice/shared", Type: RuleDo, Content: "by carol"})
	third := mustAdd(t, dave, NewMemory{ProjectID: "shared", EventType: EventProjectRule, RuleType: RuleDo,
		Content: "by dave"})
	if second.ID != first.ID || third.ID != first.ID || third.Owner != "alice" || third.Revision != 3 || second.Created {
		t.Errorf("the rule is %s, %s and %s of %s at revision %d, want one rule of alice at revision 3", first.ID,
			second.ID, third.ID, third.Owner, third.Revision)
	}
	collections, err := dave.Collections(t.Context())
	if err != nil || slices.ContainsFunc(collections, func(c Collection) bool { return c.Owner == "dave" }) {
		t.Errorf("a rule stored in place makes a collection: %+v, %v, want none of dave", collections, err)
	}
	made := mustSetRule(t, carol, NewRule{ProjectID: "alice/shared", Type: RuleDont, Content: "by carol"})
	if made.Owner != "alice" || made.Collection != DefaultCollection || !made.Created {
		t.Errorf(`a writer's new rule is %+v, want owner "alice", collection %v and created`, made, DefaultCollection)
	}
	if r := mustSetRule(t, alice, NewRule{ProjectID: "shared", Type: RuleDont, Content: "by alice"}); r.ID != made.ID ||
		r.Owner != "alice" {
		t.Errorf(`the owner's rule is %+v, want ID %v and owner "alice"`, r, made.ID)
	}
	if _, err := bob.SetRule(t.Context(), NewRule{ProjectID: "shared", Type: RuleDo, Content: "by bob"}); !errors.Is(err,
		ErrForbidden) {
		t.Errorf("a reader's rule gives %v, want ErrForbidden", err)
	}
	if _, err := bob.SetTodo(t.Context(), NewTodo{ProjectID: "shared", Content: five(nil)}); !errors.Is(err,
		ErrForbidden) {
		t.Errorf("a reader's todo gives %v, want ErrForbidden", err)
	}
	if r, err := bob.Rules(t.Context(), ProjectRef{ID: "shared"}); err != nil || r.Do.Content != "by dave" ||
		r.Dont.Content != "by alice" {
		t.Errorf(`a reader reads %+v, %v, want no error, content "by dave" and content "by alice"`, r, err)
	}
	own := mustSetRule(t, carol, NewRule{ProjectID: "shared", Type: RuleDo, Content: "of carol's own project of that id"})
	if !own.Created {
		t.Errorf("another project of the id has the rule %+v, want created", own)
	}
	if _, err := carol.UpdateMemory(t.Context(), own.ID,
		MemoryUpdate{ShownMetadata: map[string]any{"project_id": "alice/shared"}}); !errors.Is(err, ErrConflict) ||
		!strings.Contains(err.Error(), first.ID) {
		t.Errorf("moving a rule to where there is one gives %v, want ErrConflict and %q in the error", err, first.ID)
	}
	limited := n.store.As(Access{User: "alice", Projects: []string{"shared"}})
	if err := limited.DeleteRule(t.Context(), ProjectRef{}, RuleDont); !errors.Is(err, ErrForbidden) {
		t.Errorf("deleting the general rule through a view of one project: %v, want ErrForbidden", err)
	}
	if err := limited.DeleteRule(t.Context(), ProjectRef{ID: "shared"}, RuleDont); err != nil {
		t.Errorf("deleting the rule of the view's only project: %v", err)
	}
	if _, err := n.store.GetMemory(t.Context(), made.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("the deleted rule: %v, want ErrNotFound", err)
	}
}

// A user who now only reads a project, or has left it, can neither change nor remove its rules, whichever member stored
// them first.
func TestUsersWithoutWriteAccessChangeNoRules(t *testing.T) {
	onEachEngine(t, whoMayNotWriteInAProjectRewritesNoRulesThere)
}

func whoMayNotWriteInAProjectRewritesNoRulesThere(t *testing.T, empty database) {
	n := openNeighbourhood(t, buildNeighbourhood(t, empty), 0)
	alice, carol := n.store.As(Access{User: "alice"}), n.store.As(Access{User: "carol"})
	ref := ProjectRef{ID: "alice/shared"}
	rule := mustSetRule(t, carol, NewRule{ProjectID: ref.ID, Type: RuleDo, Content: "first"})
	if _, err := carol.UpdateMemory(t.Context(), rule.ID, MemoryUpdate{Content: content("second")}); err != nil {
		t.Fatal(err)
	}
	if _, err := alice.UpdateMember(t.Context(),
		ref, "carol", MemberUpdate{Role: MemberReader}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []error{ErrForbidden, ErrNotFound} {
		what := "reads only"
		if errors.Is(want, ErrNotFound) {
			what = "has left"
			if err := alice.DeleteMember(t.Context(), ref, "carol"); err != nil {
				t.Fatal(err)
			}
		}
		_, updateErr := carol.UpdateMemory(t.Context(), rule.ID, MemoryUpdate{Content: content("third")})
		_, restoreErr := carol.RestoreRevision(t.Context(), rule.ID, 1)
		_, moveErr := carol.UpdateMemory(t.Context(), rule.ID, MemoryUpdate{ShownMetadata: map[string]any{"project_id": nil}})
		for _, err := range []error{updateErr, restoreErr, moveErr} {
			if !errors.Is(err, want) {
				t.Errorf("who %s rewrites a rule: %v, want %v", what, err, want)
			}
		}
	}
	if r, err := alice.Rules(t.Context(), ref); err != nil || r.Do.Content != "second" {
		t.Errorf("the project has the rule %+v, %v; want content \"second\"", r.Do, err)
	}
}

// A memory that a former member stored in a project cannot become a rule there.
func TestFormerMembersMakeNoRulesInAProject(t *testing.T) {
	onEachEngine(t, whoHasLeftAProjectMakesNoRulesThere)
}

func whoHasLeftAProjectMakesNoRulesThere(t *testing.T, empty database) {
	n := openNeighbourhood(t, buildNeighbourhood(t, empty), 0)
	carol := n.store.As(Access{User: "carol"})
	mustExec(t, n.store, `DELETE FROM project_member
		WHERE user_id = (SELECT id FROM users WHERE uid = 'carol' AND namespace = '')`)
	_, err := carol.UpdateMemory(t.Context(), n.ids["carolreply"],
		MemoryUpdate{ShownMetadata: map[string]any{"event_type": EventProjectRule, "rule_type": "do"}})
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("it gives %v, want ErrNotFound", err)
	}
	r, err := n.store.As(Access{User: "alice"}).Rules(t.Context(), ProjectRef{ID: "shared"})
	if err != nil || r.Do != nil {
		t.Errorf("the project has the rule %+v, %v, want no error and no do rule", r.Do, err)
	}
}
