package storetest

import (
	"context"
	"errors"

	"github.com/souvenir-ai/souvenir"
)

func transactions() concept {
	return concept{"Transactions", []promise{
		{"several writes are one, and seen within at once", transactionWhole},
		{"after an error, a panic or the end of the context there is none of them", transactionUndone},
		{"an operation that fails is undone alone", transactionPart},
		{"the context is of no use afterwards", transactionEnded},
		{"methods that cannot be part of one say so", transactionRefused},
		{"deletions in one happen together, or not at all", transactionDeletes},
	}}
}

func transactionWhole(f *fixture) {
	var project souvenir.Project
	var first, second souvenir.StoredMemory
	turn := souvenir.Turn{Role: "user", Content: "the valve leaks"}
	f.check("Transaction", f.store.Transaction(f.ctx, func(ctx context.Context) (err error) {
		project, err = f.store.AddProject(ctx, souvenir.NewProject{ID: "boiler"})
		f.check("AddProject", err)
		first, err = f.store.AddMemory(ctx, souvenir.NewMemory{Content: "the boiler has a red valve", ProjectID: "boiler"})
		f.check("AddMemory", err)
		second, err = f.store.PutMemory(ctx, souvenir.NewMemory{Key: "k", Content: "a cellar", Related: []string{first.ID}})
		f.check("PutMemory", err)
		_, err = f.store.UpdateMemory(ctx, first.ID, souvenir.MemoryUpdate{State: new("open")})
		f.check("UpdateMemory", err)
		_, err = f.store.Conversation("talk").Append(ctx, turn)
		f.check("Append", err)
		m, err := f.store.GetMemory(ctx, first.ID)
		f.check("GetMemory", err)
		f.equal("within, the state", []any{m.State, m.Revision}, []any{"open", 2})
		found, err := f.store.Search(ctx,
			souvenir.Query{Text: "red valve", Collections: []string{souvenir.DefaultCollection}})
		f.check("Search", err)
		if len(found.Hits) == 0 || found.Hits[0].ID != first.ID {
			f.Errorf("within the transaction a search finds %+v; want the new memory first", found.Hits)
		}
		return f.store.Transaction(ctx, func(ctx context.Context) error { // a part of this one
			_, err := f.store.AddMemory(ctx, souvenir.NewMemory{Content: "an inner one"})
			return err
		})
	}))
	f.equal("of the project", project.ID, "boiler")
	f.equal("memories", len(f.list(souvenir.MemoryList{Collections: []string{souvenir.DefaultCollection}})), 3)
	found, err := f.reader.Search(f.ctx, souvenir.Query{Text: "red valve"})
	f.check("Search", err)
	if len(found.Hits) == 0 || found.Hits[0].ID != first.ID {
		f.Errorf("after the transaction a search finds %+v; want the new memory first", found.Hits)
	}
	kept, err := f.reader.GetMemory(f.ctx, second.ID)
	f.check("GetMemory", err)
	f.equal("links", kept.Related, []string{first.ID})
}

func transactionUndone(f *fixture) {
	kept := f.add(souvenir.NewMemory{Content: "the old kettle"})
	broken := errors.New("the caller gave up")
	change := func(ctx context.Context) {
		_, err := f.store.UpdateMemory(ctx, kept.ID, souvenir.MemoryUpdate{Content: new("the new kettle")})
		f.check("UpdateMemory", err)
		_, err = f.store.AddMemory(ctx, souvenir.NewMemory{Content: "a spout", Collection: souvenir.DefaultCollection,
			ProjectID: "kitchen"})
		f.check("AddMemory", err)
		_, err = f.store.As(souvenir.Access{User: "ann"}).AddMemory(ctx, souvenir.NewMemory{Content: "of another user"})
		f.check("AddMemory through a view", err)
	}
	err := f.store.Transaction(f.ctx, func(ctx context.Context) error { change(ctx); return broken })
	if err != broken { //nolint:errorlint // it is the same
		f.Errorf("Transaction gives %v; want fn's own error", err)
	}
	func() {
		defer func() { f.equal("the panic", recover(), any("oh")) }()
		_ = f.store.Transaction(f.ctx, func(ctx context.Context) error { change(ctx); panic("oh") })
	}()
	ending, end := context.WithCancel(f.ctx)
	err = f.store.Transaction(ending, func(ctx context.Context) error { change(ctx); end(); return nil })
	if !errors.Is(err, context.Canceled) {
		f.Errorf("with a context that ends, Transaction gives %v; want context.Canceled", err)
	}
	err = f.store.Transaction(f.ctx, func(ctx context.Context) error {
		_ = f.store.Transaction(ctx, func(ctx context.Context) error { change(ctx); return broken })
		return nil
	})
	if !errors.Is(err, broken) {
		f.Errorf("with an inner one that failed, Transaction gives %v; want its error", err)
	}
	all := f.list(souvenir.MemoryList{})
	if len(all) != 1 || all[0].Content != "the old kettle" || all[0].Revision != 1 {
		f.Errorf("after it: %+v; want the one memory unchanged", all)
	}
	f.equal("of another user", len(f.as(souvenir.Access{User: "ann"}).list(souvenir.MemoryList{})), 0)
	found, err := f.reader.Search(f.ctx, souvenir.Query{Text: "kettle"})
	f.check("Search", err)
	if len(found.Hits) != 1 || found.Hits[0].Content != "the old kettle" {
		f.Errorf("a search finds %+v; want the memory unchanged", found.Hits)
	}
	f.add(souvenir.NewMemory{Content: "and the store goes on"})
}

func transactionPart(f *fixture) {
	f.check("Transaction", f.store.Transaction(f.ctx, func(ctx context.Context) error {
		_, err := f.store.AddMemories(ctx, []souvenir.NewMemory{{Content: "one"}, {Content: "two", Related: []string{"x"}}},
			nil)
		f.fails("AddMemories with a link to nowhere", err, souvenir.ErrNotFound)
		_, err = f.store.GetMemory(ctx, "nowhere")
		f.fails("GetMemory", err, souvenir.ErrNotFound)
		_, err = f.store.AddMemory(ctx, souvenir.NewMemory{Content: "three"})
		return err
	}))
	all := f.list(souvenir.MemoryList{})
	if len(all) != 1 || all[0].Content != "three" {
		f.Errorf("what remains is %+v; want the last one alone", all)
	}
}

func transactionEnded(f *fixture) {
	var ended context.Context
	f.check("Transaction", f.store.Transaction(f.ctx, func(ctx context.Context) error { ended = ctx; return nil }))
	_, err := f.store.AddMemory(ended, souvenir.NewMemory{Content: "too late"})
	f.fails("AddMemory after the end", err, souvenir.ErrClosed, "ended")
	_, err = f.store.Search(ended, souvenir.Query{Text: "late"})
	f.fails("Search after the end", err, souvenir.ErrClosed)
	f.fails("Transaction after the end", f.store.Transaction(ended, func(ctx context.Context) error {
		_, err := f.store.AddMemory(ctx, souvenir.NewMemory{Content: "too late"})
		return err
	}), souvenir.ErrClosed)
	f.equal("memories", len(f.list(souvenir.MemoryList{})), 0)
}

func transactionRefused(f *fixture) {
	write := func(ctx context.Context) error {
		_, err := f.store.AddMemory(ctx, souvenir.NewMemory{Content: "x"})
		return err
	}
	f.fails("in a snapshot", f.store.Snapshot(f.ctx, func(ctx context.Context) error {
		return f.store.Transaction(ctx, write)
	}), souvenir.ErrReadOnly)
	f.fails("of a read-only view", f.store.As(souvenir.Access{ReadOnly: true}).Transaction(f.ctx, write),
		souvenir.ErrReadOnly)
	f.add(souvenir.NewMemory{Content: "y", ProjectID: "p"})
	f.check("Transaction", f.store.Transaction(f.ctx, func(ctx context.Context) error {
		f.failsAt("DeleteProject", f.store.DeleteProject(ctx, souvenir.ProjectRef{ID: "p"},
			&souvenir.DeletionOptions{WithMemories: true}), souvenir.ErrInvalid, "ctx", "DeleteProject", "outside")
		_, err := f.store.Trash().Empty(ctx)
		f.failsAt("Trash.Empty", err, souvenir.ErrInvalid, "ctx")
		_, err = f.store.Accounts().AddUser(ctx, souvenir.NewUser{Name: "bea"})
		f.failsAt("AddUser", err, souvenir.ErrInvalid, "ctx")
		_, err = f.store.Upkeep().Purge(ctx, nil)
		f.failsAt("Purge", err, souvenir.ErrInvalid, "ctx")
		f.failsAt("WaitEmbedded", f.store.Upkeep().WaitEmbedded(ctx), souvenir.ErrInvalid, "ctx")
		return nil
	}))
	f.equal("memories", len(f.list(souvenir.MemoryList{})), 1)
}

func transactionDeletes(f *fixture) {
	undone := errors.New("undone")
	for _, end := range []error{undone, nil} {
		one, two := f.add(souvenir.NewMemory{Content: "one", Tags: []string{"old"}}),
			f.add(souvenir.NewMemory{Content: "two"})
		err := f.store.Transaction(f.ctx, func(ctx context.Context) error {
			deleted, err := f.store.DeleteMemories(ctx,
				souvenir.MemoriesDeletion{MemoryList: souvenir.MemoryList{Tags: []string{"old"}}})
			if err != nil {
				return err // the transaction may be retried
			}
			f.equal("deleted", deleted.Changed, 1)
			if err := f.store.DeleteMemory(ctx, two.ID, &souvenir.DeletionOptions{Erase: true}); err != nil {
				return err
			}
			if _, err := f.store.Trash().Restore(ctx, one.ID); err != nil {
				return err
			}
			if err := f.store.DeleteMemory(ctx, one.ID, nil); err != nil {
				return err
			}
			return end
		})
		if !errors.Is(err, end) {
			f.Errorf("Transaction gives %v; want %v", err, end)
		}
		left := len(f.list(souvenir.MemoryList{}))
		if end != nil {
			f.equal("after an undo", []any{left, len(f.trash())}, []any{2, 0})
			f.check("DeleteMemory", f.store.DeleteMemory(f.ctx, one.ID, &souvenir.DeletionOptions{Erase: true}))
			f.check("DeleteMemory", f.store.DeleteMemory(f.ctx, two.ID, &souvenir.DeletionOptions{Erase: true}))
			continue
		}
		f.equal("after the end", []any{left, len(f.trash())}, []any{0, 1})
	}
}
