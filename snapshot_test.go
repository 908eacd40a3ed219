package souvenir

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// In a snapshot everything is the state of one moment, through every view, whatever is written meanwhile.
func TestASnapshotIsTheStateOfOneMoment(t *testing.T) {
	s := openWords(t, filepath.Join(t.TempDir(), "snapshot.db"), Options{})
	ann := s.As(Access{User: "ann"})
	first := mustAdd(t, ann, NewMemory{Content: "kettle", ProjectID: "p"})
	var after context.Context
	err := s.Snapshot(t.Context(), func(ctx context.Context) error {
		after = ctx
		if _, err := ann.GetMemory(ctx, first.ID); err != nil {
			return err
		}
		mustAdd(t, ann, NewMemory{Content: "kettle again", ProjectID: "p"})
		if err := ann.DeleteMemory(t.Context(), first.ID); err != nil {
			return err
		}
		if m, err := ann.GetMemory(ctx, first.ID); err != nil || m.Content != "kettle" {
			t.Errorf("the memory deleted since is %v, %v; want it", m, err)
		}
		n := 0
		for _, err := range ann.Memories(ctx, List{}) {
			if n++; err != nil {
				return err
			}
		}
		if n != 1 {
			t.Errorf("the snapshot lists %d memories; want 1", n)
		}
		found, err := ann.Search(ctx, Query{Text: "kettle"})
		if err != nil || len(found.Hits) != 1 || found.Hits[0].ID != first.ID {
			t.Errorf("the snapshot finds %v, %v; want the first memory", found.Hits, err)
		}
		if o, err := ann.Insights().Overview(ctx, OverviewQuery{}); err != nil || o.Memories != 1 {
			t.Errorf("the snapshot's overview has %d memories, %v; want 1", o.Memories, err)
		}
		return ann.Snapshot(ctx, func(inner context.Context) error { // a part of this one
			_, err := ann.GetMemory(inner, first.ID)
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ann.GetMemory(after, first.ID); !errors.Is(err, ErrClosed) {
		t.Errorf("reading after the end gives %v; want ErrClosed", err)
	}
	if _, err := ann.GetMemory(t.Context(), first.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("after the snapshot the deleted memory gives %v; want ErrNotFound", err)
	}
}

func TestASnapshotRefusesWrites(t *testing.T) {
	for _, path := range []string{":memory:", filepath.Join(t.TempDir(), "snapshot.db")} {
		s := openWords(t, path, Options{})
		failed := errors.New("failed")
		err := s.Snapshot(t.Context(), func(ctx context.Context) error {
			if _, err := s.AddMemory(ctx, NewMemory{Content: "x"}); !errors.Is(err, ErrReadOnly) {
				t.Errorf("AddMemory in a snapshot gives %v; want ErrReadOnly", err)
			}
			if _, err := s.Accounts().AddUser(ctx, NewUser{Name: "ann", Password: "right password"}); !errors.Is(err,
				ErrReadOnly) {
				t.Errorf("AddUser in a snapshot gives %v; want ErrReadOnly", err)
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Errorf("the error of fn comes back as %v, want %v", err, failed)
		}
		if _, err := s.AddMemory(t.Context(), NewMemory{Content: "x"}); err != nil {
			t.Errorf("AddMemory after a snapshot: %v", err)
		}
	}
}
