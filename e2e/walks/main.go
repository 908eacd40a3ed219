// Command walks makes each call of docs/walks.md exactly once, with a store in a file, and writes which statements that
// executed. It must be built with -cover -covermode=atomic; e2e/walks.sh does that, and compares.
//
//	walks FOLDER      writes counters into a folder for each walk
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/coverage"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: walks FOLDER")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "walks:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder string) error {
	dir, err := os.MkdirTemp("", "walks")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store, err := souvenir.Open(ctx, filepath.Join(dir, "souvenir.db"), nil)
	if err != nil {
		return err
	}
	defer store.Close()
	user, err := store.Accounts().AddUser(ctx, souvenir.NewUser{Name: "Ann", Password: "a long pass phrase of hers"})
	if err != nil {
		return err
	}
	view := store.As(souvenir.Access{User: user.ID})
	project := souvenir.ProjectRef{ID: "boats"}
	var memory string
	for i := range 30 {
		content := fmt.Sprintf("Boat %d leaves the harbour at noon.", i)
		m, err := view.AddMemory(ctx, souvenir.NewMemory{Content: content})
		if err != nil {
			return err
		}
		memory = m.ID
	}
	blue := souvenir.NewMemory{Content: "The boats are blue.", ProjectID: project.ID}
	if _, err := view.AddMemory(ctx, blue); err != nil {
		return err
	}
	if _, err := view.SetTodo(ctx, souvenir.NewTodo{ProjectID: project.ID,
		Content: "## Constitution\n\n## Spec\n\n## Plan\n\n## Tasks\n\n## Gaps\n"}); err != nil {
		return err
	}
	token, err := view.Accounts().AddToken(ctx, souvenir.NewToken{Name: "walks"})
	if err != nil {
		return err
	}
	signIn, err := store.Accounts().AddSignIn(ctx, souvenir.NewSignIn{User: user.ID})
	if err != nil {
		return err
	}
	const site = "http://memory.test"
	handler := server.New(store, &server.Options{PublicURL: site})
	ask := func(method, target, body, header, value string) error {
		r := httptest.NewRequestWithContext(ctx, method, site+target, strings.NewReader(body))
		r.Header.Set(header, value)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			return fmt.Errorf("%s %s: got %d and %s, want %d", method, target, w.Code, w.Body, http.StatusOK)
		}
		return nil
	}
	edits := 0
	for _, walk := range []struct {
		name string
		call func() error
	}{
		{"Search", func() error {
			_, err := view.Search(ctx, souvenir.Query{Text: "when does boat 7 leave"})
			return err
		}},
		{"AddMemory", func() error {
			_, err := view.AddMemory(ctx, souvenir.NewMemory{Content: "The ferry is late today."})
			return err
		}},
		{"UpdateTodoSection", func() error {
			edits++
			_, err := view.UpdateTodoSection(ctx, project, souvenir.SectionTasks,
				souvenir.TodoSectionUpdate{Content: fmt.Sprintf("- [ ] Paint boat %d\n", edits)})
			return err
		}},
		{"POST /tools/call", func() error {
			err := ask("POST", "/tools/call", `{"name": "memory", "arguments": {"action": "store", "content": "A gull."}}`,
				"Authorization", "Bearer "+token.Value)
			time.Sleep(300 * time.Millisecond) // it is recorded after the answer
			return err
		}},
		{"GET /memories/{id}", func() error {
			return ask("GET", "/memories/"+memory, "", "Cookie", "auth_token="+signIn.Value)
		}},
	} {
		if err := walk.call(); err != nil { // opens, loads and prepares what later calls find ready
			return fmt.Errorf("%s: %w", walk.name, err)
		}
		time.Sleep(3 * time.Second) // for work in the background
		if err := coverage.ClearCounters(); err != nil {
			return err
		}
		if err := walk.call(); err != nil {
			return fmt.Errorf("%s: %w", walk.name, err)
		}
		to := filepath.Join(folder, strings.NewReplacer("/", "_", " ", "_").Replace(walk.name))
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		if err := coverage.WriteMetaDir(to); err != nil {
			return err
		}
		if err := coverage.WriteCountersDir(to); err != nil {
			return err
		}
	}
	return nil
}
