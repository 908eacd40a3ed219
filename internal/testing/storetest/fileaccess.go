package storetest

import (
	"io"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

func fileStranger(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "secret", ProjectID: "apollo"})
	file := f.addFile(souvenir.NewFile{MemoryID: m.ID, Tags: []string{"t"}, Category: "c"}, "x")
	f.addFile(souvenir.NewFile{ProjectID: "apollo"}, "x")
	ann := f.as(souvenir.Access{User: "ann"})
	hers := ann.addFile(souvenir.NewFile{ProjectID: "apollo", Filename: "hers"}, "y")
	same(f, "hers", ann.listFiles(souvenir.FileList{}), []string{"hers"})
	for _, l := range []souvenir.FileList{{MemoryID: m.ID}, {ProjectID: "local/apollo"}, {Tags: []string{"t"}},
		{Category: "c"}} {
		same(f, "hers", ann.listFiles(l), nil)
	}
	for name, call := range fileCalls(f, file.ID) {
		f.failsAt(name+" by a stranger", call(ann.store), souvenir.ErrNotFound, "file_id", file.ID)
	}
	_, err := ann.store.UpdateFile(f.ctx, hers.ID, souvenir.FileUpdate{MemoryID: &m.ID})
	f.failsAt("linking to a stranger's memory", err, souvenir.ErrNotFound, "memory_id", m.ID)
	_, err = ann.store.AddFile(f.ctx, souvenir.NewFile{MemoryID: m.ID}, strings.NewReader("x"))
	f.failsAt("storing with a stranger's memory", err, souvenir.ErrNotFound, "memory_id", m.ID)
	f.equal("the file", f.getFile(file.ID), file)
}

// fileCalls returns all methods that name a file.
func fileCalls(f *fixture, id string) map[string]func(*souvenir.Store) error {
	return map[string]func(*souvenir.Store) error{
		"GetFile":    func(s *souvenir.Store) error { _, err := s.GetFile(f.ctx, id); return err },
		"OpenFile":   func(s *souvenir.Store) error { _, err := s.OpenFile(f.ctx, id); return err },
		"UpdateFile": func(s *souvenir.Store) error { _, err := s.UpdateFile(f.ctx, id, souvenir.FileUpdate{}); return err },
		"DeleteFile": func(s *souvenir.Store) error { return s.DeleteFile(f.ctx, id, nil) },
	}
}

func fileLimited(f *fixture) {
	outside := f.add(souvenir.NewMemory{Content: "outside"})
	f.addFile(souvenir.NewFile{Filename: "outside"}, "x")
	free := f.addFile(souvenir.NewFile{Filename: "linked outside", MemoryID: outside.ID}, "x")
	apollo := f.as(souvenir.Access{Projects: []string{"apollo"}})
	file := apollo.addFile(souvenir.NewFile{Filename: "inside"}, "x") // and creates the project
	f.equal("its project", f.getFile(file.ID).ProjectID, "apollo")
	f.equal("what it sees", apollo.listFiles(souvenir.FileList{}), []string{"inside"})
	for name, call := range fileCalls(f, free.ID) {
		f.failsAt(name+" through a limited view", call(apollo.store), souvenir.ErrNotFound, "file_id", free.ID)
	}
	_, err := apollo.store.AddFile(f.ctx, souvenir.NewFile{MemoryID: outside.ID}, strings.NewReader("x"))
	f.failsAt("linking to a memory outside", err, souvenir.ErrNotFound, "memory_id")
	_, err = apollo.store.AddFile(f.ctx, souvenir.NewFile{ProjectID: "gemini"}, strings.NewReader("x"))
	f.failsAt("storing outside", err, souvenir.ErrForbidden, "project_id", "gemini")
	_, err = apollo.store.UpdateFile(f.ctx, file.ID, souvenir.FileUpdate{Project: &souvenir.ProjectRef{ID: "gemini"}})
	f.failsAt("moving outside", err, souvenir.ErrForbidden, "project_id", "gemini")
	f.equal("moving out of all projects stays within",
		apollo.updateFile(file.ID, souvenir.FileUpdate{Project: &souvenir.ProjectRef{}}).ProjectID, "apollo")
	two := f.as(souvenir.Access{Projects: []string{"apollo", "gemini"}})
	_, err = two.store.AddFile(f.ctx, souvenir.NewFile{}, strings.NewReader("x"))
	f.failsAt("storing in neither of two", err, souvenir.ErrForbidden, "project_id", `"apollo" or "gemini"`)
	f.equal("moving into a project that is not there yet",
		two.updateFile(file.ID, souvenir.FileUpdate{Project: &souvenir.ProjectRef{ID: "gemini"}}).ProjectID, "gemini")
	inside := two.add(souvenir.NewMemory{Content: "inside", ProjectID: "apollo"})
	f.equal("with a memory inside", two.addFile(souvenir.NewFile{MemoryID: inside.ID}, "x").ProjectID, "apollo")
	same(f, "through a view of nothing", f.as(souvenir.Access{Projects: []string{}}).listFiles(souvenir.FileList{}), nil)
}

func fileReadOnly(f *fixture) {
	file := f.addFile(souvenir.NewFile{Filename: "a"}, "a")
	view := f.as(souvenir.Access{ReadOnly: true})
	f.equal("read", []string{view.readFile(file.ID), view.getFile(file.ID).ID}, []string{"a", file.ID})
	unread := readerFunc(func([]byte) (int, error) { f.Errorf("the content is read"); return 0, io.EOF })
	_, err := view.store.AddFile(f.ctx, souvenir.NewFile{}, unread)
	f.fails("AddFile", err, souvenir.ErrReadOnly)
	for _, name := range []string{"UpdateFile", "DeleteFile"} {
		f.fails(name, fileCalls(f, file.ID)[name](view.store), souvenir.ErrReadOnly)
	}
	f.equal("the file", f.getFile(file.ID), file)
}
