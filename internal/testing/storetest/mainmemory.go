package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

func mainMemories() concept {
	return concept{"Main memories", []promise{
		{"it is the project's newest active one, with what is up to two links away", mainMemoryWhole},
		{"cycles end, and each related memory comes once", mainMemoryCycle},
		{"links from memories that the reader may not see take no room", mainMemoryUnseen},
		{"a project without one, and an unknown project, are not found", mainMemoryNone},
	}}
}

func (f *fixture) mainMemory(project souvenir.ProjectRef) souvenir.MainMemory {
	f.Helper()
	m, err := f.reader.GetMainMemory(f.ctx, project)
	f.check("GetMainMemory "+brief(project), err)
	return m
}

func mainMemoryWhole(f *fixture) {
	far := f.add(souvenir.NewMemory{Content: "three links away"})
	second := f.add(souvenir.NewMemory{Content: "two links away", Related: []string{far.ID}})
	first := f.add(souvenir.NewMemory{Content: "linked " + strings.Repeat("x", 2000), Related: []string{second.ID},
		ProjectID: "q"})
	old := f.add(souvenir.NewMemory{Content: "old", EventType: "project-main", ProjectID: "p", ProjectName: "Apollo"})
	f.clock.Pass(time.Second)
	main := f.add(souvenir.NewMemory{Content: "the main memory", EventType: "Project-Main", State: "active",
		ProjectID: "p", Related: []string{first.ID}, ShownMetadata: map[string]any{"stack": "go"}})
	back := f.add(souvenir.NewMemory{Content: "links to it", Related: []string{main.ID}})
	f.clock.Pass(time.Second)
	f.add(souvenir.NewMemory{Content: "archived", EventType: "project-main", State: "archived", ProjectID: "p"})
	f.add(souvenir.NewMemory{Content: "elsewhere", EventType: "project-main", ProjectID: "q"})
	f.add(souvenir.NewMemory{Content: "nowhere", EventType: "project-main"})
	for _, ref := range []souvenir.ProjectRef{{ID: "p"}, {Name: "Apollo"}, {ID: "p", Name: "Apollo"}} {
		m := f.mainMemory(ref)
		f.equal("project", []any{m.Project.ID, m.Project.Name, m.Project.MemoryCount}, []any{"p", "Apollo", 3})
		f.equal("memory", m.Memory, f.get(main.ID))
		var related []string
		for _, r := range m.Related {
			related = append(related, fmt.Sprint(r.ID, r.Depth, r.Direction, r.Path))
		}
		same(f, "related", related, []string{
			fmt.Sprint(first.ID, 1, "outgoing", []string{main.ID, first.ID}),
			fmt.Sprint(back.ID, 1, "incoming", []string{main.ID, back.ID}),
			fmt.Sprint(second.ID, 2, "outgoing", []string{main.ID, first.ID, second.ID}),
		})
		f.equal("content of a related one", len(m.Related[0].Content), len("linked ")+2000)
	}
	encoded := toJSON(f.mainMemory(souvenir.ProjectRef{ID: "p"}))
	for _, part := range []string{`{"project":{"project_id":"p","project_name":"Apollo",`, `"memory":{"id":"` + main.ID,
		`"files":[]`, `"related_memories":[{"id":"` + first.ID, `"depth":1`, `"path":["` + main.ID} {
		if !strings.Contains(encoded, part) {
			f.Errorf("got the JSON %s, want one that contains %s", encoded, part)
		}
	}
	f.clock.Pass(time.Second)
	f.rewrite(old.ID, "mended")
	f.equal("the one updated last", f.mainMemory(souvenir.ProjectRef{ID: "p"}).Memory.Content, "mended")
	f.equal("without files and links", toJSON(f.mainMemory(souvenir.ProjectRef{ID: "p"}).Related), "null")
}

func mainMemoryCycle(f *fixture) {
	main := f.add(souvenir.NewMemory{Content: "main", EventType: "project-main", ProjectID: "p"})
	a := f.add(souvenir.NewMemory{Content: "a", Related: []string{main.ID}})
	b := f.add(souvenir.NewMemory{Content: "b", Related: []string{a.ID, main.ID}})
	f.patch(main.ID, map[string]any{"related_memory_ids": []any{a.ID, b.ID}})
	related := f.mainMemory(souvenir.ProjectRef{ID: "p"}).Related
	f.equal("related", len(related), 2)
	for _, r := range related {
		f.equal("depth of "+r.Content, r.Depth, 1)
	}
}

func mainMemoryUnseen(f *fixture) {
	p := share(f)
	main := p.owner.add(souvenir.NewMemory{Content: "main", EventType: "project-main", ProjectID: "apollo"})
	var private []souvenir.NewMemory
	for i := range 1001 {
		private = append(private, souvenir.NewMemory{Content: fmt.Sprint("a note ", i), Related: []string{main.ID}})
	}
	_, err := p.writer.store.AddMemories(f.ctx, private, nil)
	f.check("AddMemories", err)
	link := p.owner.add(souvenir.NewMemory{Content: "links to it", Related: []string{main.ID}})
	m := p.owner.mainMemory(apollo)
	if len(m.Related) != 1 || m.Related[0].ID != link.ID {
		f.Errorf("got %d related memories, want one, %s", len(m.Related), link.ID)
	}
	f.same("warnings", m.Warnings)
	m = p.writer.mainMemory(apollo)
	f.equal("related, as seen by their writer", len(m.Related), 1000)
	f.equal("warnings to their writer", len(m.Warnings), 1)
}

func mainMemoryNone(f *fixture) {
	f.add(souvenir.NewMemory{Content: "x", ProjectID: "p", ProjectName: "Apollo"})
	f.add(souvenir.NewMemory{Content: "x", EventType: "project-main", State: "completed", ProjectID: "p"})
	get := func(s *souvenir.Store, ref souvenir.ProjectRef) error {
		_, err := s.GetMainMemory(f.ctx, ref)
		return err
	}
	f.fails("without one", get(f.reader, souvenir.ProjectRef{ID: "p"}), souvenir.ErrNotFound, "has no main memory",
		"project-main")
	f.failsAt("unknown id", get(f.reader, souvenir.ProjectRef{ID: "q"}), souvenir.ErrNotFound, "project_id", `"q"`,
		"not found, or you have no access to it")
	f.failsAt("unknown name", get(f.reader, souvenir.ProjectRef{Name: "Gemini"}), souvenir.ErrNotFound, "project_name",
		`"Gemini"`, "not found, or you have no access to it")
	f.failsAt("not found", get(f.reader, souvenir.ProjectRef{}), souvenir.ErrInvalid, "project_id", "project_name")
	f.failsAt("no id", get(f.reader, souvenir.ProjectRef{ID: " "}), souvenir.ErrInvalid, "project_id")
	f.failsAt("disagreement", get(f.reader, souvenir.ProjectRef{ID: "p", Name: "Gemini"}), souvenir.ErrInvalid,
		"project_name", "disagree")
	f.fails("of another user", get(f.reader.As(souvenir.Access{User: "ann"}), souvenir.ProjectRef{ID: "p"}),
		souvenir.ErrNotFound, "not found")
	f.fails("in a view of another project",
		get(f.reader.As(souvenir.Access{Projects: []string{"q"}}), souvenir.ProjectRef{ID: "p"}), souvenir.ErrNotFound,
		"not found")
}
