package objectstest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/files/objects"
)

// Run tests the contract of object storage. It leaves no objects behind.
func Run(t *testing.T, s objects.Storage) {
	ctx := context.Background()
	key := func(name string) string { return "contract" + name }
	contents := map[string][]byte{
		key("empty"): {}, key("byte"): {0}, key("text"): []byte("zażółć\r\n"),
		key("chunk"): bytes.Repeat([]byte{0, 1, 254, 255}, 64<<10),
	}
	defer func() {
		if err := s.Delete(ctx, []string{key("empty"), key("byte"), key("text"), key("chunk")}); err != nil {
			t.Error(err)
		}
	}()
	var all sync.WaitGroup
	for k, data := range contents {
		all.Go(func() {
			if err := s.Put(ctx, k, data); err != nil {
				t.Errorf("Put %s: got %v, want no error", k, err)
			}
		})
	}
	all.Wait()
	for k, data := range contents {
		if got, err := s.Get(ctx, k); err != nil || !bytes.Equal(got, data) {
			t.Errorf("Get %s: got %d bytes and %v, want the %d bytes that were put", k, len(got), err, len(data))
		}
	}
	if got, err := s.Get(ctx, key("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get of no object: got %d bytes and %v, want fs.ErrNotExist", len(got), err)
	}
	if err := s.Delete(ctx, []string{key("none"), key("byte"), key("text")}); err != nil {
		t.Errorf("Delete of two objects and one that is not there: got %v, want no error", err)
	}
	for _, k := range []string{key("byte"), key("text")} {
		if _, err := s.Get(ctx, k); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Get %s after Delete: got %v, want fs.ErrNotExist", k, err)
		}
	}
	if got, err := s.Get(ctx, key("chunk")); err != nil || len(got) != len(contents[key("chunk")]) {
		t.Errorf("an object that was not deleted: got %d bytes and %v, want it as before", len(got), err)
	}
	ended, end := context.WithCancel(ctx)
	end()
	_, gotten := s.Get(ended, key("chunk"))
	for call, err := range map[string]error{"Put": s.Put(ended, key("byte"), []byte("x")), "Get": gotten,
		"Delete": s.Delete(ended, []string{key("chunk")})} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s after the end of the context: got %v, want context.Canceled", call, err)
		}
	}
}
