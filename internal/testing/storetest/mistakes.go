package storetest

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// mistakes are callers' mistakes that are accepted, or answered with a helpful message.
func mistakes() concept {
	return concept{"Mistakes", []promise{
		{"content that shows nothing is refused", mistakesBlank},
		{"no stored text has U+0000", mistakesZero},
		{"bounds of two types are refused", mistakesBounds},
		{"a project that is ambiguous is named by ids that can be given back", mistakesAmbiguous},
		{"a token may name its projects by name", mistakesTokenProjects},
		{"a credential whose project is gone says so", mistakesGoneProject},
		{"errors name owners as people do", mistakesOwners},
		{"no name is suggested in its own place", mistakesSuggestions},
		{"a token's times are there when they are never", mistakesTokenTimes},
	}}
}

func mistakesZero(f *fixture) {
	const zero = "a\x00b"
	m := f.add(souvenir.NewMemory{Content: "fine"})
	for argument, write := range map[string]func() error{
		"content": func() error {
			_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: zero})
			return err
		},
		"key": func() error {
			_, err := f.store.PutMemory(f.ctx, souvenir.NewMemory{Content: "x", Key: zero})
			return err
		},
		"metadata": func() error {
			_, err := f.store.UpdateMemory(f.ctx, m.ID, souvenir.MemoryUpdate{Metadata: map[string]any{"list": []any{zero}}})
			return err
		},
		"description": func() error {
			_, err := f.store.AddCollection(f.ctx, souvenir.NewCollection{Name: "c", Description: zero})
			return err
		},
	} {
		f.failsAt(argument, write(), souvenir.ErrInvalid, argument, "U+0000 at offset 1")
	}
	_, err := f.store.SetPreferences(f.ctx, map[string]any{zero: zero})
	f.check("SetPreferences, which only JSON holds", err)
	found, err := f.store.Search(f.ctx, souvenir.Query{Text: "fine" + zero})
	f.check("Search", err)
	f.equal("found", len(found.Hits), 1)
}

func mistakesBlank(f *fixture) {
	id := f.addTexts("a car")[0]
	for _, content := range []string{" ", "\t\r\n", "\u00a0\u3000\u2003", "\u200b\ufeff\u2060"} {
		_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: content})
		f.failsAt("AddMemory", err, souvenir.ErrInvalid, "content", "white space")
		_, err = f.store.UpdateMemory(f.ctx, id, souvenir.MemoryUpdate{Content: &content})
		f.failsAt("UpdateMemory", err, souvenir.ErrInvalid, "content", "white space")
		_, err = f.store.SetRule(f.ctx, souvenir.NewRule{Type: souvenir.RuleDo, Content: content})
		f.failsAt("SetRule", err, souvenir.ErrInvalid, "content", "white space")
	}
	f.equal("content", f.get(id).Content, "a car")
	f.add(souvenir.NewMemory{Content: "🙂"})
}

func mistakesBounds(f *fixture) {
	for _, c := range []souvenir.Condition{souvenir.Between(1, "b"), {MoreThan: "a", LessThan: 2.5},
		souvenir.Between(true, "x")} {
		_, err := f.store.Search(f.ctx, souvenir.Query{Filter: souvenir.Filter{"size": c}})
		f.failsAt("Search", err, souvenir.ErrInvalid, "filter", "two types")
	}
	f.search(souvenir.Query{Filter: souvenir.Filter{"size": souvenir.Between(1, 2)}})
	f.search(souvenir.Query{Filter: souvenir.Filter{"size": souvenir.Between("a", "b")}})
}

// mistakesAmbiguous makes two people share projects with the same id, under user ids as long as real ones.
func mistakesAmbiguous(f *fixture) {
	for _, owner := range longUsers {
		f.shareWith(souvenir.LocalUser, owner, "p-9f1c2a44-5d1e-4f6a-9b1d-1c2d3e4f5a6b")
	}
	_, err := f.store.GetProject(f.ctx, souvenir.ProjectRef{ID: "p-9f1c2a44-5d1e-4f6a-9b1d-1c2d3e4f5a6b"})
	f.failsAt("GetProject", err, souvenir.ErrInvalid, "project_id")
	for _, owner := range longUsers {
		ref := owner + "/p-9f1c2a44-5d1e-4f6a-9b1d-1c2d3e4f5a6b"
		if err != nil && !strings.Contains(err.Error(), strconv.Quote(ref)) {
			f.Errorf("the error says %q; want it to name %s in full", err, ref)
		}
		f.equal("given back", f.project(ref).Owner, owner)
	}
}

var longUsers = []string{"0198a6f0-1111-7abc-8def-00000000aaaa", "0198a6f0-2222-7abc-8def-00000000bbbb"}

// shareWith makes a user a reader of another user's project.
func (f *fixture) shareWith(user, owner, project string) {
	f.Helper()
	owners := f.as(souvenir.Access{User: owner})
	owners.addProject(souvenir.NewProject{ID: project})
	f.add(souvenir.NewMemory{Content: "so that the store knows the user"})
	_, err := f.operator.AddMember(f.ctx,
		souvenir.NewMember{Project: souvenir.ProjectRef{ID: owner + "/" + project}, User: user, Role: souvenir.MemberReader})
	f.check("AddMember", err)
}

func mistakesTokenProjects(f *fixture) {
	project := f.addProject(souvenir.NewProject{ID: "p-1", Name: "Falcon"})
	added := f.addToken(souvenir.NewToken{Name: "n", Projects: []string{"Falcon"}})
	f.same("projects", added.Projects, project.Owner+"/p-1")
	_, err := f.store.Accounts().AddToken(f.ctx, souvenir.NewToken{Name: "n", Projects: []string{"Condor"}})
	f.failsAt("AddToken", err, souvenir.ErrNotFound, "projects", "Condor")
}

func mistakesGoneProject(f *fixture) {
	f.addProject(souvenir.NewProject{ID: "p-1"})
	token := f.addToken(souvenir.NewToken{Name: "n", Projects: []string{"p-1"}})
	f.deleteProject(souvenir.ProjectRef{ID: "p-1"}, nil)
	limited := f.as(f.principal(token.Value).Access)
	_, err := limited.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "a car"})
	f.failsAt("AddMemory", err, souvenir.ErrForbidden, "project_id", "local/p-1", "no longer")
	if found := limited.search(souvenir.Query{Text: "car"}); !contains(found.Warnings, "no longer") {
		f.Errorf("warnings of a search: %q; want one that says that the project is gone", found.Warnings)
	}
	f.equal("projects", len(f.projects()), 0)
}

func mistakesOwners(f *fixture) {
	anna := f.addUser(souvenir.NewUser{Name: "Anna Berg"})
	f.shareWith(souvenir.LocalUser, anna.ID, "p-1")
	stored := f.as(souvenir.Access{User: anna.ID}).add(souvenir.NewMemory{Content: "a car", ProjectID: "p-1"})
	content := "a bus"
	_, err := f.store.UpdateMemory(f.ctx, stored.ID, souvenir.MemoryUpdate{Content: &content})
	f.failsAt("UpdateMemory", err, souvenir.ErrForbidden, "id", `"Anna Berg"`)
}

func mistakesSuggestions(f *fixture) {
	f.as(souvenir.Access{User: "ann"}).addCollection(souvenir.NewCollection{Name: "notes"})
	f.shareWith(souvenir.LocalUser, "ann", "p-1")
	f.as(souvenir.Access{User: "ann"}).add(souvenir.NewMemory{Content: "a car", ProjectID: "p-1", Collection: "notes"})
	_, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "a bus", Collection: "notes"})
	f.fails("AddMemory", err, souvenir.ErrNotFound, "notes")
	if err != nil && strings.Contains(err.Error(), "did you mean") {
		f.Errorf("the error says %q; want no suggestion of the same name", err)
	}
}

func mistakesTokenTimes(f *fixture) {
	added := f.addToken(souvenir.NewToken{Name: "n"})
	for what, token := range map[string]any{"an added token": added, "a listed token": f.tokens()[0]} {
		encoded, err := json.Marshal(token)
		f.check("Marshal", err)
		var members map[string]any
		f.check("Unmarshal", json.Unmarshal(encoded, &members))
		for _, name := range []string{"expires_at", "last_used_at"} {
			if value, given := members[name]; !given || value != nil {
				f.Errorf("%s has %s %v, given: %v; want null", what, name, value, given)
			}
		}
	}
	encoded, err := json.Marshal(added)
	f.check("Marshal", err)
	var back souvenir.AddedToken
	f.check("Unmarshal", json.Unmarshal(encoded, &back))
	f.equal("read back", back, added)
}
