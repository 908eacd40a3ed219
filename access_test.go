package souvenir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

// The access matrix of a project: what each role may do with its contents. Everything in the project was stored by a
// member who has since left, so that having stored something gives no access.

// matrixPart is a user's role in the project of the matrix.
type matrixPart struct {
	name string
	can  reach
	join func(t *testing.T, owner *Store, project string) // what gives the user this role; nil for none
}

// reach is how much of the project a part opens.
type reach int

const (
	mayNothing reach = iota
	mayRead
	mayWrite
	mayManage // what only the owner of record may do
)

// matrixParts returns the rows of the matrix. A row's name is also its user's id.
func matrixParts() []matrixPart {
	member := func(user string, role MemberRole) func(*testing.T, *Store, string) {
		return func(t *testing.T, owner *Store, project string) { share(t, owner, project, user, role) }
	}
	former := func(user string, role MemberRole) func(*testing.T, *Store, string) {
		return func(t *testing.T, owner *Store, project string) {
			share(t, owner, project, user, role)
			if err := owner.DeleteMember(t.Context(), ProjectRef{ID: project}, user); err != nil {
				t.Fatal(err)
			}
		}
	}
	return []matrixPart{
		{"owner", mayManage, nil},
		{"coowner", mayWrite, member("coowner", MemberOwner)},
		{"writer", mayWrite, member("writer", MemberWriter)},
		{"reader", mayRead, member("reader", MemberReader)},
		{"formerowner", mayNothing, former("formerowner", MemberOwner)},
		{"formerreader", mayNothing, former("formerreader", MemberReader)},
		{"invited", mayNothing, func(t *testing.T, owner *Store, project string) { // as an owner, not yet accepted
			_, err := owner.AddMember(t.Context(),
				NewMember{Project: ProjectRef{ID: project}, User: "invited", Role: MemberOwner})
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"raised", mayRead, func(t *testing.T, owner *Store, project string) { // a reader; the new role is not yet accepted
			share(t, owner, project, "raised", MemberReader)
			_, err := owner.UpdateMember(t.Context(),
				ProjectRef{ID: project}, "raised", MemberUpdate{Role: MemberOwner})
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"author", mayNothing, nil}, // stored everything as a writer, and left
		{"stranger", mayNothing, nil},
	}
}

// matrixThings are the contents of the project.
type matrixThings struct {
	project          ProjectRef // OWNER/ID
	memory, rule     string     // ids
	file, linkedFile string
	private          string // a memory of the visitor's own
}

// matrixCell is a column: an action and the access it needs. An empty result counts as not found.
type matrixCell struct {
	name  string
	needs reach
	do    func(t *testing.T, s *Store, on matrixThings) error
}

var errEmpty = errors.New("nothing is found")

func notEmpty(err error, n int) error {
	if err == nil && n == 0 {
		return errEmpty
	}
	return err
}

var matrixReads = []matrixCell{
	{"GetMemory", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.GetMemory(t.Context(), on.memory)
		return err
	}},
	{"MemoryStatus", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.Insights().MemoryStatus(t.Context(), on.memory)
		return err
	}},
	{"Revisions", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		all, err := s.Revisions(t.Context(), on.memory)
		if err == nil && len(all) != 2 {
			t.Errorf("the history has %d versions, want 2", len(all))
		}
		return err
	}},
	{"RevisionPage", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		page, err := s.Insights().RevisionPage(t.Context(), on.memory, RevisionQuery{Limit: 1})
		if err == nil && (len(page.Revisions) != 1 || page.Oldest != 1) {
			t.Errorf("the part of the history is %+v, want one state of two", page)
		}
		return err
	}},
	{"RelatedMemories", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.RelatedMemories(t.Context(), on.memory, 2)
		return err
	}},
	{"Search", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		found, err := s.Search(t.Context(), Query{Text: "kettle", Filter: Filter{"id": on.memory}})
		return notEmpty(err, found.Total)
	}},
	{"Memories", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		for m, err := range s.Memories(t.Context(), MemoryList{}) {
			if err != nil || m.ID == on.memory {
				return err
			}
		}
		return errEmpty
	}},
	{"a link from the caller's own memory", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		if on.private == "" {
			return errEmpty
		}
		m, err := s.GetMemory(t.Context(), on.private)
		return notEmpty(err, len(m.Related))
	}},
	{"GetRule", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.GetRule(t.Context(), on.project, RuleDo)
		return err
	}},
	{"the rule by id", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.GetMemory(t.Context(), on.rule)
		return err
	}},
	{"the rule's history", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.Revisions(t.Context(), on.rule)
		return err
	}},
	{"GetTodo", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.GetTodo(t.Context(), on.project)
		return err
	}},
	{"GetContext", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		c, err := s.GetContext(t.Context(), ContextQuery{ProjectID: on.project.ID, Query: "kettle"})
		if err == nil && (c.ProjectRules == nil || c.ProjectRules.Do == nil) {
			err = errEmpty
		}
		for _, m := range c.Related {
			if err != nil && m.ID == on.memory {
				t.Errorf("a context shows the memory, and no rules, want none without its rules")
			}
		}
		return err
	}},
	{"GetMainMemory", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.GetMainMemory(t.Context(), on.project)
		return err
	}},
	{"GetModuleState", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		m, err := s.GetModuleState(t.Context(), ModuleQuery{Module: "pump", ProjectID: on.project.ID})
		return notEmpty(err, m.Summary.Total)
	}},
	{"GetFile", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.GetFile(t.Context(), on.file)
		return err
	}},
	{"OpenFile", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		r, err := s.OpenFile(t.Context(), on.linkedFile)
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.ReadAll(r)
		return err
	}},
	{"Files of the memory", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		p, err := s.FilePage(t.Context(), FileQuery{FileList: FileList{MemoryID: on.memory}})
		return notEmpty(err, p.Total)
	}},
	{"GetProject", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.GetProject(t.Context(), on.project)
		return err
	}},
	{"Members", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.Members(t.Context(), on.project)
		return err
	}},
	{"Export", mayManage, func(t *testing.T, s *Store, on matrixThings) error {
		var out strings.Builder
		_, err := s.Upkeep().Export(t.Context(), &out, nil)
		if err == nil && !strings.Contains(out.String(), `"`+on.memory+`"`) {
			err = cmp.Or(errEmpty, err)
		}
		return err
	}},
}

var matrixWrites = []matrixCell{
	{"UpdateMemory", mayWrite, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.UpdateMemory(t.Context(), on.memory, MemoryUpdate{Content: content("changed")})
		return err
	}},
	{"RestoreRevision", mayWrite, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.RestoreRevision(t.Context(), on.memory, 1)
		return err
	}},
	{"DeleteMemory and Trash.Restore", mayWrite, func(t *testing.T, s *Store, on matrixThings) error {
		if err := s.DeleteMemory(t.Context(), on.memory, nil); err != nil {
			return err
		}
		_, err := s.Trash().Restore(t.Context(), on.memory)
		return err
	}},
	{"DeleteMemory", mayWrite, func(t *testing.T, s *Store,
		on matrixThings) error {
		return s.DeleteMemory(t.Context(), on.memory, nil)
	}},
	{"linking to the memory", mayRead, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.AddMemory(t.Context(), NewMemory{Content: "of my own", Related: []string{on.memory}})
		return err
	}},
	{"AddMemory", mayWrite, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.AddMemory(t.Context(), NewMemory{Content: "one more", ProjectID: on.project.ID})
		return err
	}},
	{"SetRule", mayWrite, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.SetRule(t.Context(), NewRule{ProjectID: on.project.ID, Type: RuleDo, Content: "changed"})
		return err
	}},
	{"the rule by id, changed", mayWrite, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.UpdateMemory(t.Context(), on.rule, MemoryUpdate{Content: content("changed")})
		return err
	}},
	{"DeleteRule", mayWrite, func(t *testing.T, s *Store, on matrixThings) error {
		return s.DeleteRule(t.Context(), on.project, RuleDo)
	}},
	{"SetTodo", mayWrite, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.SetTodo(t.Context(), NewTodo{ProjectID: on.project.ID, Content: five(nil)})
		return err
	}},
	{"CompleteTask", mayWrite, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.CompleteTask(t.Context(), TaskRef{ProjectID: on.project.ID, TaskID: "T1"})
		return err
	}},
	{"UpdateFile", mayWrite, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.UpdateFile(t.Context(), on.file, FileUpdate{Description: content("changed")})
		return err
	}},
	{"DeleteFile", mayWrite, func(t *testing.T, s *Store,
		on matrixThings) error {
		return s.DeleteFile(t.Context(), on.linkedFile, nil)
	}},
	{"AddFile to the memory", mayWrite, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.AddFile(t.Context(), NewFile{MemoryID: on.memory}, strings.NewReader("x"))
		return err
	}},
	{"AddFile", mayWrite, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.AddFile(t.Context(), NewFile{ProjectID: on.project.ID}, strings.NewReader("x"))
		return err
	}},
	{"taking the memory out", mayManage, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.UpdateMemory(t.Context(), on.memory,
			MemoryUpdate{ShownMetadata: map[string]any{"project_id": nil, "project_name": nil}})
		return err
	}},
	{"taking the file out", mayManage, func(t *testing.T, s *Store, on matrixThings) error {
		_, err := s.UpdateFile(t.Context(), on.file, FileUpdate{Project: &ProjectRef{}})
		return err
	}},
	{"DeleteProject", mayManage, func(t *testing.T, s *Store, on matrixThings) error {
		return s.DeleteProject(t.Context(), on.project, &DeletionOptions{WithMemories: true})
	}},
}

// want returns the error that a cell should give for a part.
func (c matrixCell) want(p matrixPart) error {
	switch {
	case p.can >= c.needs:
		return nil
	case p.can >= mayRead && c.name != "Export":
		return ErrForbidden
	}
	return ErrNotFound
}

// fill adds the project and the author's contents. The author then leaves.
func (p matrixPart) fill(t *testing.T, s *Store, project string) matrixThings {
	t.Helper()
	owner, author, visitor := s.As(Access{User: "owner"}), s.As(Access{User: "author"}), s.As(Access{User: p.name})
	mustAddProject(t, owner, NewProject{ID: project})
	share(t, owner, project, "author", MemberWriter)
	on := matrixThings{project: ProjectRef{ID: "owner/" + project}}
	m := mustAdd(t, author, NewMemory{Content: "a kettle", ProjectID: on.project.ID, EventType: EventProjectMain,
		Tags: []string{"pump"}})
	on.memory = m.ID
	if _, err := author.UpdateMemory(t.Context(), m.ID, MemoryUpdate{Content: content("a new kettle")}); err != nil {
		t.Fatal(err)
	}
	on.rule = mustSetRule(t, author, NewRule{ProjectID: on.project.ID, Type: RuleDo, Content: "boil"}).ID
	if _, err := author.SetTodo(t.Context(),
		NewTodo{ProjectID: on.project.ID,
			Content: five(map[Section]string{SectionTasks: "## Tasks\n- [ ] T1 boil"})}); err != nil {
		t.Fatal(err)
	}
	on.file = mustAddFile(t, author, NewFile{ProjectID: on.project.ID}, "plan").ID
	on.linkedFile = mustAddFile(t, author, NewFile{MemoryID: m.ID}, "plan").ID
	if p.name == "author" {
		on.private = mustAdd(t, author, NewMemory{Content: "of my own", Related: []string{m.ID}}).ID
	}
	if err := author.DeleteMember(t.Context(), on.project, "author"); err != nil {
		t.Fatal(err)
	}
	if p.join != nil {
		p.join(t, owner, project)
	}
	if p.can >= mayRead {
		on.private = mustAdd(t, visitor, NewMemory{Content: "of my own", Related: []string{m.ID}}).ID
	}
	return on
}

func TestTheMatrixOfAProject(t *testing.T) {
	people := map[string]string{}
	for _, p := range matrixParts() {
		people[p.name] = ""
	}
	s := openPeople(t, people)
	projects := 0
	next := func() string {
		projects++
		return fmt.Sprint("p", projects)
	}
	for k, p := range matrixParts() {
		t.Run(p.name, func(t *testing.T) {
			visitor := s.As(Access{User: p.name})
			limited := s.As(Access{User: p.name, ReadOnly: true})
			on := p.fill(t, s, next())
			for i, c := range slices.Concat(matrixReads, matrixWrites) {
				if !longtest.Part(i+k, 1, 11) { // a different selection for each user
					continue
				}
				view := limited
				if i >= len(matrixReads) { // each write may delete its target
					on, view = p.fill(t, s, next()), visitor
				}
				err := c.do(t, view, on)
				if errors.Is(err, errEmpty) || errors.Is(err, ErrInvalid) { // OWNER/ID of an unknown project
					err = ErrNotFound
				}
				if want := c.want(p); !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", c.name, err, want)
				}
			}
		})
	}
	checkConsistency(t, s)
}

// refusedConfined are the methods, besides those of Accounts and Upkeep, that a confined view refuses.
var refusedConfined = []string{"AddMember", "UpdateMember", "DeleteMember", "InvitedMembers", "Snapshot", "Transaction"}

func TestSealedViewsRefuseWiderAccess(t *testing.T) {
	st := settle(t, openWords(t, filepath.Join(t.TempDir(), "settled.db"), Options{Changeable: settingNames}))
	open := st.store
	st.store = open.Confined()
	refused := slices.Concat(refusedConfined, methodNames(open.Accounts()), methodNames(open.Upkeep()))
	undone := errors.New("undone")
	calls := st.calls()
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		var failed error
		called := func(ctx context.Context) error { failed = calls[name](ctx); return undone }
		if slices.Contains(notInTransactions, name) && name != "WaitEmbedded" {
			continue // covered by the other tests of views
		}
		// A confined view gains nothing from the context of the operator's transaction.
		if err := open.Transaction(t.Context(), called); !errors.Is(err, undone) {
			t.Errorf("the transaction with %s gives %v, want %v", name, err, undone)
		}
		want := slices.Contains(refused, name)
		refusedIn := errors.Is(failed, ErrInvalid) && argumentOf(failed) == "ctx"
		if got := errors.Is(failed, ErrForbidden) || refusedIn; got != want {
			t.Errorf("%s of a confined view gives %v; refused: got %v, want %v", name, failed, got, want)
		}
		if !want {
			continue
		}
		if err := calls[name](t.Context()); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s of a confined view gives %v; want ErrForbidden", name, err)
		}
	}
	if err := st.store.Close(); !errors.Is(err, ErrForbidden) {
		t.Errorf("Close of a confined view gives %v; want ErrForbidden", err)
	}
	if _, err := open.GetMemory(t.Context(), st.memory); err != nil {
		t.Errorf("afterwards the store is no longer open: %v", err)
	}
}

func argumentOf(err error) string {
	var known *Error
	if errors.As(err, &known) {
		return known.Argument
	}
	return ""
}

// Every store returned by a confined view or reachable through its handles is confined, and its As can only narrow
// access.
func TestResultsOfConfinedViewsStayConfined(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "confined.db"), Options{})
	mine := mustAdd(t, s.As(Access{User: "ann"}), NewMemory{Content: "of ann", ProjectID: "p"})
	other := mustAdd(t, s.As(Access{User: "ann"}), NewMemory{Content: "of ann, elsewhere", ProjectID: "q"})
	mustAdd(t, s.As(Access{User: "bob"}), NewMemory{Content: "of bob"})
	confined := s.As(Access{User: "ann", Projects: []string{"p"}, ReadOnly: true}).Confined()

	for method := range reflect.TypeFor[*Store]().Methods() {
		for i := range method.Type.NumOut() {
			out := method.Type.Out(i)
			known := slices.Contains([]string{"As", "Confined"}, method.Name)
			if out == reflect.TypeFor[*Store]() && !known {
				t.Errorf("%s returns a store, want no method but As and Confined to return one: see that it is confined",
					method.Name)
			}
			if out.Kind() == reflect.Pointer && out != reflect.TypeFor[*Store]() {
				for inner := range out.Methods() {
					for j := range inner.Type.NumOut() {
						if inner.Type.Out(j) == reflect.TypeFor[*Store]() {
							t.Errorf("%s of %s returns a store, want none in results", inner.Name, method.Name)
						}
					}
				}
			}
		}
	}
	for name, behind := range map[string]*Store{"Accounts": confined.Accounts().s, "Upkeep": confined.Upkeep().s,
		"Insights": confined.Insights().s, "Trash": confined.Trash().s, "Conversation": confined.Conversation("c").store,
		"Confined": confined.Confined(), "As": confined.As(Access{User: "ann"}),
		"Accounts of a namespace": confined.Accounts().Namespace("x").s} {
		if !behind.confined || behind.operator || behind.access.User != "ann" || !behind.access.ReadOnly ||
			!slices.Equal(behind.access.Projects, []string{"p"}) {
			t.Errorf("%s has the store %+v; want it confined", name, behind.access)
		}
	}
	if n := reflect.TypeFor[Access]().NumField(); n != 5 {
		t.Errorf("Access has %d fields; see that narrowed limits the new one, and count it here, want 5", n)
	}
	for _, c := range []struct {
		access Access
		want   error
	}{
		{Access{}, nil}, {Access{User: "ann", Projects: []string{"p"}}, nil},
		{Access{User: "bob"}, ErrForbidden}, {Access{User: LocalUser}, ErrForbidden},
		{Access{Namespace: "crm"}, ErrForbidden}, {Access{User: "ann", Namespace: "crm"}, ErrForbidden},
		{Access{User: "ann", Projects: []string{"q"}}, ErrForbidden},
		{Access{User: "ann", Projects: []string{"p", "q"}}, ErrForbidden}, {Access{Projects: []string{}}, ErrNotFound},
	} {
		view := confined.As(c.access)
		if _, err := view.GetMemory(t.Context(), mine.ID); !errors.Is(err, c.want) {
			t.Errorf("As(%+v) of a confined view reads with %v; want %v", c.access, err, c.want)
		}
		if _, err := view.As(Access{User: "ann"}).GetMemory(t.Context(), other.ID); err == nil {
			t.Errorf("As(%+v) and As again reach another project, want an error", c.access)
		}
		if _, err := view.AddMemory(t.Context(), NewMemory{Content: "x", ProjectID: "p"}); err == nil {
			t.Errorf("As(%+v) of a confined view that is read-only writes, want an error", c.access)
		}
	}
}
