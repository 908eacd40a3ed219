package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/tools"
)

func TestToolsAreChosenByNameAndGetAPrefix(t *testing.T) {
	for _, test := range []struct {
		choice tools.Choice
		want   []string // aliases
	}{
		{tools.Choice{Only: []string{"todo", "memory", "todo"}}, []string{"memory", "todo"}},
		{tools.Choice{Only: []string{"memory"}, Prefix: "souvenir_"}, []string{"souvenir_memory"}},
		{tools.Choice{ReadOnly: true, Prefix: "s-"}, []string{"s-memory", "s-get_project_main_memory",
			"s-get_module_state", "s-list_collections"}},
	} {
		chosen, err := tools.Choose(test.choice)
		var got []string
		for _, c := range chosen {
			got = append(got, c.Alias)
			reading := strings.Contains(c.Description, "For reading only")
			if test.choice.Prefix+c.Name != c.Alias || c.Name == "memory" && reading != test.choice.ReadOnly {
				t.Errorf("%+v: got %s as %s with the description %q, want its alias and its actions", test.choice, c.Name,
					c.Alias, c.Description)
			}
		}
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%+v: got %q and %v, want %q", test.choice, got, err, test.want)
		}
	}
	if all, err := tools.Choose(tools.Choice{}); err != nil || len(all) != len(tools.List()) {
		t.Errorf("got %d tools and %v, want all %d", len(all), err, len(tools.List()))
	}
	for want, bad := range map[string]tools.Choice{
		`Only[1] is "memories"; expected one of "memory", `: {Only: []string{"memory", "memories"}},
		`Only[0] is ""; expected one of `:                   {Only: []string{""}},
		`Only[0] is "create_collection"`:                    {Only: []string{"create_collection"}, ReadOnly: true},
		`Prefix makes the name "a bmemory" of a tool`:       {Prefix: "a b"},
		`Prefix makes the name "记忆memory" of a tool`:        {Prefix: "记忆"},
		`expected 1 to 64 letters, digits, _ and -`:         {Prefix: strings.Repeat("x", 60)},
	} {
		chosen, err := tools.Choose(bad)
		if !errors.Is(err, souvenir.ErrInvalid) || chosen != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %d tools and the error %v, want ErrInvalid with %q", bad, len(chosen), err, want)
		}
	}
}

func TestErrorsOfToolsSayHowToCorrectACall(t *testing.T) {
	w := newWorld(t)
	set := tools.New(w.store, nil)
	call := func(ctx context.Context, arguments string) (string, error) {
		return set.CallText(ctx, "memory", json.RawMessage(arguments))
	}
	if got, err := call(t.Context(), `{"action": "search", "query": "tea"}`); err != nil || !json.Valid([]byte(got)) {
		t.Errorf("got %q and %v, want JSON", got, err)
	}
	if got, err := call(t.Context(), `{"action": "store"}`); err != nil || !strings.HasPrefix(got, "error: content ") {
		t.Errorf("without content: got %q and %v, want a result that names it", got, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := call(ended, `{"action": "search", "query": "tea"}`); !errors.Is(err, context.Canceled) || got != "" {
		t.Errorf("after its end: got %q and %v, want the context's error", got, err)
	}
}
