package systemtest

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// What each visitor of the neighbourhood can do with files. A file is linked to each memory, so those who see and
// change the memory can see and change the file.

var fileVisits = map[string]func(v visit){
	"GetFile": func(v visit) {
		v.onEachFile("GetFile", false, func(s *Store, id string) (any, error) { return s.GetFile(v.Context(), id) })
	},
	"FileStatus": func(v visit) {
		v.onEachFile("FileStatus", false,
			func(s *Store, id string) (any, error) { return s.Insights().FileStatus(v.Context(), id) })
	},
	"WaitIndexed": func(v visit) {
		v.onEachFile("WaitIndexed", false, func(s *Store, id string) (any, error) { return s.WaitIndexed(v.Context(), id) })
	},
	"OpenFile": func(v visit) {
		v.onEachFile("OpenFile", false, func(s *Store, id string) (any, error) {
			r, err := s.OpenFile(v.Context(), id)
			if err != nil {
				return nil, err
			}
			data, err := io.ReadAll(r)
			return string(data), err
		})
	},
	"UpdateFile": func(v visit) {
		v.onEachFile("UpdateFile", true, func(s *Store, id string) (any, error) {
			return s.UpdateFile(v.Context(), id, FileUpdate{Description: content("changed"), Tags: []string{"changed"}})
		})
	},
	"DeleteFile": func(v visit) {
		v.onEachFile("DeleteFile", true,
			func(s *Store, id string) (any, error) { return nil, s.DeleteFile(v.Context(), id, nil) })
	},
	"Files": func(v visit) {
		for _, m := range neighbours {
			v.attach(m.name)
		}
		for _, l := range []FileList{{}, {Tags: []string{"everyone"}}, {Category: "common"}, {Sort: SortUpdatedAsc}} {
			if names := fileNames(v, v.view, l); !slices.Equal(names, v.sees) {
				v.Errorf("Files(%+v) gives %v, want %v", l, names, v.sees)
			}
		}
		for _, m := range neighbours {
			var want []string
			if slices.Contains(v.sees, m.name) {
				want = []string{m.name}
			}
			if names := fileNames(v, v.view, FileList{MemoryID: v.n.ids[m.name]}); !slices.Equal(names, want) {
				v.Errorf("the files of %s are %v, want %v", m.name, names, want)
			}
		}
		results, err := v.view.Search(v.Context(), Query{IncludeFiles: true, Limit: MaxLimit})
		v.check("Search", results, err)
		for _, h := range results.Hits {
			if name, _, _ := strings.Cut(h.Content, " "); h.FileCount != 1 || len(h.Files) != 1 || h.Files[0].Filename != name {
				v.Errorf("%s is found with %d files: %v, want file count 1, 1 file and filename %v", name, h.FileCount, h.Files,
					name)
			}
		}
	},
	"FilePage": func(v visit) {
		for _, m := range neighbours {
			v.attach(m.name)
		}
		var names []string
		for offset := 0; ; offset += 2 {
			p, err := v.view.FilePage(v.Context(), FileQuery{Limit: 2, Offset: offset})
			if v.check("FilePage", p, err); p.Total != len(v.sees) {
				v.Errorf("FilePage: got a total of %d, want %d", p.Total, len(v.sees))
			}
			for _, f := range p.Files {
				names = append(names, f.Filename)
			}
			if err != nil || !p.HasMore() {
				break
			}
		}
		if slices.Sort(names); !slices.Equal(names, v.sees) {
			v.Errorf("the pages have %v, want %v", names, v.sees)
		}
	},
	"AddFile": func(v visit) { v.addsFiles() },
}

// attach links a new file to a memory, through its owner's view.
func (v visit) attach(name string) File {
	v.Helper()
	for _, m := range neighbours {
		if m.name == name {
			return mustAddFile(v, v.n.store.As(Access{User: m.user}), NewFile{
				Filename: name, Description: "of " + name, Category: "common", Tags: []string{"tag" + name, "everyone"},
				MemoryID: v.n.ids[name],
			}, "content of "+name)
		}
	}
	v.Fatalf("there is no memory %s", name)
	return File{}
}

// onEachFile calls a method that reads or changes a file on one file of every memory.
func (v visit) onEachFile(what string, changes bool, call func(s *Store, id string) (any, error)) {
	v.Helper()
	for _, name := range slices.Sorted(maps.Keys(v.n.ids)) {
		f := v.attach(name)
		before := rowsOf(v.T, v.n.store)
		answer, err := call(v.view, f.ID)
		v.check(what+" of the file of "+name, answer, err, f.ID)
		changed := rowsOf(v.T, v.n.store) != before
		var want error
		switch {
		case !slices.Contains(v.sees, name):
			v.denied(what, f.ID, err, func(id string) error { _, err := call(v.view, id); return err })
			want = err
		case changes && v.access.ReadOnly:
			want = ErrReadOnly
		case changes && !slices.Contains(v.changes, name):
			want = ErrForbidden
		}
		if !errors.Is(err, want) || changed != (changes && err == nil) {
			v.Errorf("%s of the file of %s gives %v, want %v; something changes: %v", what, name, err, want, changed)
		}
	}
}

// addsFiles adds files to memories, to projects, and to neither.
func (v visit) addsFiles() {
	v.Helper()
	add := func(f NewFile) (File, error) {
		content := strings.NewReader("the content")
		added, err := v.view.AddFile(v.Context(), f, content)
		if err != nil && content.Len() != len("the content") {
			v.Errorf("AddFile(%+v) reads the content, and then gives %v, want the error before it", f, err)
		}
		return added, err
	}
	for _, m := range neighbours {
		id := v.n.ids[m.name]
		added, err := add(NewFile{MemoryID: id})
		v.check("AddFile with "+m.name, added, err, id)
		var want error
		switch {
		case !slices.Contains(v.sees, m.name):
			v.denied("AddFile", id, err, func(id string) error { _, err := add(NewFile{MemoryID: id}); return err })
			want = err
		case v.access.ReadOnly:
			want = ErrReadOnly
		case !slices.Contains(v.changes, m.name):
			want = ErrForbidden
		}
		if !errors.Is(err, want) || err == nil &&
			(added.MemoryID != id || added.Owner != cmp.Or(map[string]string{"alice/shared": "alice"}[m.project], m.user)) {
			v.Errorf("AddFile with %s gives %+v, %v, want %v", m.name, added, err, want)
		}
	}
	added, err := add(NewFile{})
	v.check("AddFile", added, err)
	if !errors.Is(err, v.visitor.adds) {
		v.Errorf("AddFile gives %v, want %v", err, v.visitor.adds)
	}
	added, err = add(NewFile{ProjectID: "alice/shared"})
	v.check("AddFile into a project", added, err)
	want := map[string]error{"bob": ErrForbidden, "frank": ErrForbidden, "eve": ErrInvalid,
		"noah": ErrInvalid}[v.access.User]
	switch {
	case v.access.ReadOnly:
		want = ErrReadOnly
	case v.access.Projects != nil && !slices.Contains(v.sees, "aliceopen"):
		want = ErrForbidden
	}
	if !errors.Is(err, want) {
		v.Errorf("AddFile into alice/shared gives %v, want %v", err, want)
	}
}

// A file in a project belongs to the project: its members can use it, and only its owner can take it out.
func TestFilesOfASharedProject(t *testing.T) { onEachEngine(t, filesOfASharedProject) }

func filesOfASharedProject(t *testing.T, empty database) {
	n := openNeighbourhood(t, buildNeighbourhood(t, empty), 0)
	view := func(user string) *Store { return n.store.As(Access{User: user}) }
	f := mustAddFile(t, view("carol"), NewFile{Filename: "plan", ProjectID: "alice/shared"}, "the plan")
	for user, c := range map[string]struct{ sees, changes error }{
		"alice": {nil, nil}, "carol": {nil, nil}, "dave": {nil, nil}, "bob": {nil, ErrForbidden},
		"frank": {nil, ErrForbidden},
		"eve":   {ErrNotFound, ErrNotFound}, "noah": {ErrNotFound, ErrNotFound},
	} {
		if _, err := view(user).GetFile(t.Context(), f.ID); !errors.Is(err, c.sees) {
			t.Errorf("%s sees it: %v, want %v", user, err, c.sees)
		}
		if status, err := view(user).Insights().FileStatus(t.Context(), f.ID); !errors.Is(err, c.sees) || err == nil &&
			status.Writable != (c.changes == nil) {
			t.Errorf("%s: got %+v, %v, want what the visitor may do", user, status, err)
		}
		if _, err := view(user).UpdateFile(t.Context(), f.ID, FileUpdate{Description: content("by " + user)}); !errors.Is(err,
			c.changes) {
			t.Errorf("%s changes it: %v, want %v", user, err, c.changes)
		}
		if user != "alice" { // only the project's owner can take it out
			for what, u := range map[string]FileUpdate{"out": {Project: &ProjectRef{}},
				"into a project": {Project: &ProjectRef{ID: "mine"}}} {
				if _, err := view(user).UpdateFile(t.Context(), f.ID, u); !isAny(err, ErrForbidden, ErrNotFound) {
					t.Errorf("%s takes it %s: %v, want ErrForbidden or ErrNotFound", user, what, err)
				}
			}
		}
	}
	hers := mustAdd(t, view("carol"), NewMemory{Content: "carol's own"}).ID
	if _, err := view("carol").UpdateFile(t.Context(), f.ID, FileUpdate{MemoryID: &hers}); !errors.Is(err, ErrForbidden) {
		t.Errorf("carol takes it to a memory of her own: %v, want ErrForbidden", err)
	}
	open := n.ids["aliceopen"]
	linked, err := view("dave").UpdateFile(t.Context(), f.ID, FileUpdate{MemoryID: &open})
	if err != nil || linked.MemoryID != open || linked.ProjectID != "shared" {
		t.Errorf(`dave links it within the project: %+v, %v, want no error, memory ID %v and project ID "shared"`, linked,
			err, open)
	}

	// The user who stored it loses it when the memory moves out of her sight.
	if _, err := view("alice").UpdateMemory(t.Context(), open,
		MemoryUpdate{ShownMetadata: map[string]any{"project_id": "secretplan"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := view("carol").GetFile(t.Context(), f.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("carol: %v, want ErrNotFound", err)
	}
	if names := fileNames(t, view("carol"), FileList{MemoryID: open}); len(names) != 0 {
		t.Errorf("carol finds by the memory: %v, want none", names)
	}
	if _, err := view("bob").GetFile(t.Context(), f.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("bob: %v, want ErrNotFound", err)
	}
	if his, err := view("alice").GetFile(t.Context(), f.ID); err != nil || his.MemoryID != open ||
		his.ProjectID != "secretplan" {
		t.Errorf(`alice: %+v, %v, want no error, memory ID %v and project ID "secretplan"`, his, err, open)
	}
	back := ""
	if own, err := view("alice").UpdateFile(t.Context(), f.ID,
		FileUpdate{MemoryID: &back, Project: &ProjectRef{}}); err != nil || own.ProjectID != "" || own.Owner != "alice" {
		t.Errorf(`alice takes it out of all projects: %+v, %v, want no error, no project ID and owner "alice"`, own, err)
	}
	if _, err := view("carol").GetFile(t.Context(), f.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("carol: %v, want ErrNotFound", err)
	}
}

// A reader who loses access to a project loses access to a file of it, even while reading.
func TestReadingEndsWithTheMembership(t *testing.T) { onEachEngine(t, readingEndsWithTheMembership) }

func readingEndsWithTheMembership(t *testing.T, empty database) {
	n := openNeighbourhood(t, buildNeighbourhood(t, empty), 0)
	f := mustAddFile(t, n.store.As(Access{User: "alice"}), NewFile{ProjectID: "shared"},
		strings.Repeat("x", 2*kernel.ChunkSize))
	r, err := n.store.As(Access{User: "bob"}).OpenFile(t.Context(), f.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 10)); err != nil {
		t.Error(err)
	}
	mustExec(t, n.store, `DELETE FROM project_member
		WHERE user_id = (SELECT id FROM users WHERE uid = 'bob' AND namespace = '')`)
	if _, err := r.ReadAt(make([]byte, 10), kernel.ChunkSize); !errors.Is(err, ErrNotFound) ||
		!strings.Contains(fmt.Sprint(err), f.ID) {
		t.Errorf("a read after it: %v, want ErrNotFound and %q in it", err, f.ID)
	}
}

// openers are the functions of the package that work on a store's file without a view, each with its intended callers.
var openers = map[string]string{
	"CheckExport": "everyone: it reads its arguments, and no store",
	"Open":        "users who may read the file: what it returns is the operator's",
	"Reencrypt":   "users who may read a store's file and write where the copy goes",
	"Recover":     "users who may read a damaged file and write where the new one goes",
	"WithActor":   "everyone: it gives no rights, and a view keeps its user",
	"Restore":     "users who may write where the copy goes: it makes a new file of a copy",
}

// Functions that are not methods of Store have no view to limit them, so each must be listed.
func TestEveryFunctionOnFilesIsKnown(t *testing.T) {
	sources, err := filepath.Glob(filepath.Join("..", "..", "..", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range parsed.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() && reachesFiles(f.Type.Params) {
				found[f.Name.Name] = true
				if openers[f.Name.Name] == "" {
					t.Errorf("%s in %s takes a file: got no entry in openers, want one that says who is meant to "+
						"call it", f.Name.Name, filepath.Base(source))
				}
			}
		}
	}
	for name := range openers {
		if !found[name] {
			t.Errorf("openers has %s, which is no function that takes a file", name)
		}
	}
}

// reachesFiles reports whether parameters can lead to a store's file: a context, which all work on files takes, or a
// path.
func reachesFiles(params *ast.FieldList) bool {
	for _, p := range params.List {
		if selector, ok := p.Type.(*ast.SelectorExpr); ok && selector.Sel.Name == "Context" {
			return true
		}
		for _, name := range p.Names {
			if strings.Contains(strings.ToLower(name.Name), "path") || strings.Contains(strings.ToLower(name.Name), "file") {
				return true
			}
		}
	}
	return false
}
