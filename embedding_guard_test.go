package souvenir_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
)

type brokenModel struct{ souvenir.Embedder }

func (*brokenModel) Model() string { panic("no model is loaded") }

func TestEmbeddersThatCannotWorkAreRefusedWhenTheStoreIsOpened(t *testing.T) {
	var embed func(context.Context, souvenir.Purpose, []string) ([][]float32, error)
	for name, c := range map[string]struct {
		embedder souvenir.Embedder
		says     string
	}{
		"nil function":                {souvenir.EmbedderFunc("m", 2, embed), "function"},
		"nil pointer":                 {(*brokenModel)(nil), "nil *souvenir_test.brokenModel"},
		"a panic when asked its name": {&brokenModel{}, "no model is loaded"},
	} {
		store, err := souvenir.Open(t.Context(), ":memory:", &souvenir.Options{Embedder: c.embedder})
		if err == nil {
			_ = store.Close()
		}
		if !errors.Is(err, souvenir.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Open with %s: got %v, want ErrInvalid that says %q", name, err, c.says)
		}
	}
}
