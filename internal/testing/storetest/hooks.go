package storetest

import (
	"context"
	"errors"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

func hooks() concept {
	return concept{"Hooks", []promise{
		{"a hook rewrites what is stored, updated and searched for", hooksRewrite},
		{"a hook refuses with its own error, and nothing changes", hooksRefuse},
		{"after is called when the change can be read, by everyone", hooksAfter},
		{"what a hook does with its context runs without hooks", hooksCallTheStore},
	}}
}

// hooked returns the fixture on another handle of its store, with hooks.
func (f *fixture) hooked(h souvenir.Hooks) *fixture {
	f.Helper()
	options := f.options(f.embedder)
	options.Hooks = []souvenir.Hooks{h}
	with := *f
	with.store = f.open(f.T, options)
	return &with
}

func hooksRewrite(f *fixture) {
	h := f.hooked(souvenir.Hooks{
		BeforeStore: func(_ context.Context, _ souvenir.Operation, m *souvenir.NewMemory) error {
			m.Content = strings.ReplaceAll(m.Content, "secret", "public")
			return nil
		},
		BeforeUpdate: func(_ context.Context, _ souvenir.Operation, u *souvenir.MemoryUpdate) error {
			if u.Content != nil {
				*u.Content = strings.ReplaceAll(*u.Content, "secret", "public")
			}
			return nil
		},
		BeforeSearch: func(_ context.Context, _ souvenir.Operation, q *souvenir.Query) error {
			q.Text = strings.ReplaceAll(q.Text, "secret", "public")
			return nil
		},
	})
	m, err := h.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "the secret number"})
	f.check("AddMemory", err)
	f.equal("stored", m.Content, "the public number")
	found, err := h.store.Search(f.ctx, souvenir.Query{Text: "secret"})
	f.check("Search", err)
	f.equal("found", len(found.Hits), 1)
	content := "no secret"
	_, err = h.store.UpdateMemory(f.ctx, m.ID, souvenir.MemoryUpdate{Content: &content})
	f.check("UpdateMemory", err)
	read, err := f.reader.GetMemory(f.ctx, m.ID)
	f.check("GetMemory", err)
	f.equal("read through a handle without hooks", read.Content, "no public")
	rule, err := h.store.SetRule(f.ctx, souvenir.NewRule{Type: souvenir.RuleDo, Content: "keep the secret"})
	f.check("SetRule", err)
	f.equal("the rule", rule.Content, "keep the public")
}

func hooksRefuse(f *fixture) {
	own := errors.New("not today")
	m, err := f.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "stays"})
	f.check("AddMemory", err)
	h := f.hooked(souvenir.Hooks{
		BeforeStore:  func(context.Context, souvenir.Operation, *souvenir.NewMemory) error { return own },
		BeforeUpdate: func(context.Context, souvenir.Operation, *souvenir.MemoryUpdate) error { return own },
		BeforeDelete: func(context.Context, souvenir.Operation) error { return own },
		BeforeSearch: func(context.Context, souvenir.Operation, *souvenir.Query) error { return own },
	})
	content := "changed"
	for name, call := range map[string]func() error{
		"AddMemory": func() error {
			_, err := h.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "x"})
			return err
		},
		"UpdateMemory": func() error {
			_, err := h.store.UpdateMemory(f.ctx, m.ID, souvenir.MemoryUpdate{Content: &content})
			return err
		},
		"DeleteMemory": func() error { return h.store.DeleteMemory(f.ctx, m.ID, nil) },
		"Search":       func() error { _, err := h.store.Search(f.ctx, souvenir.Query{Text: "x"}); return err },
	} {
		if err := call(); !errors.Is(err, own) || !errors.Is(err, souvenir.ErrForbidden) {
			f.Errorf("%s: got %v, want the hook's error, of the kind forbidden", name, err)
		}
	}
	left := f.list(souvenir.MemoryList{})
	f.equal("memories", len(left), 1)
	f.equal("content", left[0].Content, "stays")
}

func hooksAfter(f *fixture) {
	var missing []string
	h := f.hooked(souvenir.Hooks{After: func(ctx context.Context, o souvenir.Operation, r souvenir.OperationResult) {
		for _, id := range r.IDs {
			if _, err := f.reader.GetMemory(ctx, id); err != nil {
				missing = append(missing, o.Method)
			}
		}
		if len(r.IDs) != r.Count {
			missing = append(missing, o.Method+" without ids")
		}
	}})
	m, err := h.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "one"})
	f.check("AddMemory", err)
	_, err = h.store.UpdateMemory(f.ctx, m.ID, souvenir.MemoryUpdate{Tags: &[]string{"tag"}})
	f.check("UpdateMemory", err)
	f.equal("not to be read in After", missing, []string(nil))
}

func hooksCallTheStore(f *fixture) {
	var h *fixture
	calls := 0
	h = f.hooked(souvenir.Hooks{BeforeStore: func(ctx context.Context, _ souvenir.Operation, m *souvenir.NewMemory) error {
		calls++
		_, err := h.store.AddMemory(ctx, souvenir.NewMemory{Content: "about to store: " + m.Content})
		return err
	}})
	_, err := h.store.AddMemory(f.ctx, souvenir.NewMemory{Content: "one"})
	f.check("AddMemory", err)
	f.equal("calls", calls, 1)
	f.equal("memories", len(f.list(souvenir.MemoryList{})), 2)
}
