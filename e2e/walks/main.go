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
	walks, err := prepare(ctx, store)
	if err != nil {
		return err
	}
	for _, walk := range walks {
		if err := walk.record(folder); err != nil {
			return fmt.Errorf("%s: %w", walk.name, err)
		}
	}
	return nil
}

// walk is a call of docs/walks.md.
type walk struct {
	name string
	call func() error
}

// record makes the call twice and writes the counters of the second one: the first opens, loads and prepares what later
// ones find ready.
func (w walk) record(folder string) error {
	if err := w.call(); err != nil {
		return err
	}
	time.Sleep(3 * time.Second) // for work in the background
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if err := w.call(); err != nil {
		return err
	}
	to := filepath.Join(folder, strings.NewReplacer("/", "_", " ", "_").Replace(w.name))
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := coverage.WriteMetaDir(to); err != nil {
		return err
	}
	return coverage.WriteCountersDir(to)
}

// prepare fills a store, serves it, and returns the walks.
func prepare(ctx context.Context, store *souvenir.Store) ([]walk, error) {
	user, err := store.Accounts().AddUser(ctx, souvenir.NewUser{Name: "Ann", Password: "a long pass phrase of hers"})
	if err != nil {
		return nil, err
	}
	view := store.As(souvenir.Access{User: user.ID})
	project := souvenir.ProjectRef{ID: "boats"}
	memories := make([]souvenir.NewMemory, 30)
	for i := range memories {
		memories[i].Content = fmt.Sprintf("Boat %d leaves the harbour at noon.", i)
	}
	added, err := view.AddMemories(ctx, memories, nil)
	if err != nil {
		return nil, err
	}
	if _, err := view.SetTodo(ctx, souvenir.NewTodo{ProjectID: project.ID,
		Content: "## Constitution\n\n## Spec\n\n## Plan\n\n## Tasks\n\n## Gaps\n"}); err != nil {
		return nil, err
	}
	token, err := view.Accounts().AddToken(ctx, souvenir.NewToken{Name: "walks"})
	if err != nil {
		return nil, err
	}
	signIn, err := store.Accounts().AddSignIn(ctx, souvenir.NewSignIn{User: user.ID})
	if err != nil {
		return nil, err
	}
	edits := 0
	handler := server.New(store, &server.Options{PublicURL: site})
	return []walk{
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
			err := ask(ctx, handler, "POST", "/tools/call", "Authorization", "Bearer "+token.Value,
				`{"name": "memory", "arguments": {"action": "store", "content": "A gull."}}`)
			time.Sleep(300 * time.Millisecond) // it is recorded after the answer
			return err
		}},
		{"GET /memories/{id}", func() error {
			return ask(ctx, handler, "GET", "/memories/"+added[0].ID, "Cookie", "auth_token="+signIn.Value, "")
		}},
	}, nil
}

const site = "http://memory.test"

func ask(ctx context.Context, handler http.Handler, method, target, header, value, body string) error {
	r := httptest.NewRequestWithContext(ctx, method, site+target, strings.NewReader(body))
	r.Header.Set(header, value)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return fmt.Errorf("got %d and %s, want %d", w.Code, w.Body, http.StatusOK)
	}
	return nil
}
