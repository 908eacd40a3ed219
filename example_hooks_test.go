package souvenir_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"regexp"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// Card numbers are removed from everything an agent stores, before it is embedded or written.
func ExampleHooks_redaction() {
	card := regexp.MustCompile(`\b\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}\b`)
	redact := func(text string) string { return card.ReplaceAllString(text, "[card]") }
	var all func(value any) any // the texts of metadata, at any depth
	all = func(value any) any {
		switch v := value.(type) {
		case string:
			return redact(v)
		case []any:
			for i := range v {
				v[i] = all(v[i])
			}
		case map[string]any:
			for key := range v {
				v[key] = all(v[key])
			}
		}
		return value
	}
	hooks := souvenir.Hooks{
		BeforeStore: func(_ context.Context, _ souvenir.Operation, m *souvenir.NewMemory) error {
			m.Content = redact(m.Content)
			all(m.Metadata)
			return nil
		},
		BeforeUpdate: func(_ context.Context, _ souvenir.Operation, u *souvenir.MemoryUpdate) error {
			if u.Content != nil {
				*u.Content = redact(*u.Content)
			}
			all(u.Metadata)
			return nil
		},
		BeforeSearch: func(_ context.Context, _ souvenir.Operation, q *souvenir.Query) error {
			q.Text = redact(q.Text)
			return nil
		},
	}
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", &souvenir.Options{Hooks: []souvenir.Hooks{hooks}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	m, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "Anna pays with 4111 1111 1111 1111.",
		Metadata: map[string]any{"payment": map[string]any{"number": "4111111111111111"}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Content, m.Metadata)
	// Output:
	// Anna pays with [card]. map[payment:map[number:[card]]]
}

// Memories on hold must not be deleted.
func ExampleHooks_refusal() {
	errHold := errors.New("these memories are on hold; ask the legal department")
	var store *souvenir.Store
	hooks := souvenir.Hooks{BeforeDelete: func(ctx context.Context, o souvenir.Operation) error {
		for _, id := range o.IDs {
			m, err := store.As(o.Access).GetMemory(ctx, id)
			if err == nil && m.State == "hold" {
				return errHold
			}
		}
		return nil
	}}
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", &souvenir.Options{Hooks: []souvenir.Hooks{hooks}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	m, err := store.AddMemory(ctx, souvenir.NewMemory{Content: "The contract of 2024.", State: "hold"})
	if err != nil {
		log.Fatal(err)
	}
	err = store.DeleteMemory(ctx, m.ID, nil)
	fmt.Println(errors.Is(err, errHold), errors.Is(err, souvenir.ErrForbidden))
	fmt.Println(err)
	// Output:
	// true true
	// these memories are on hold; ask the legal department
}

// Who stored how much, and with which result. Texts appear only on request.
func ExampleHooks_observing() {
	hooks := souvenir.Hooks{After: func(_ context.Context, o souvenir.Operation, r souvenir.OperationResult) {
		fmt.Println(o.Access.User, o.Kind, r.Count, r.Err == nil, r.Duration > 0)
	}}
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", &souvenir.Options{Hooks: []souvenir.Hooks{hooks}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	ann := store.As(souvenir.Access{User: "ann"})
	_, _ = ann.AddMemory(ctx, souvenir.NewMemory{Content: "Tea at four."})
	_, _ = ann.AddMemory(ctx, souvenir.NewMemory{Content: strings.Repeat(" ", 3)})
	_, _ = ann.Search(ctx, souvenir.Query{Text: "tea"})
	// Output:
	// ann store 1 true true
	// ann store 0 false true
	// ann search 1 true true
}
