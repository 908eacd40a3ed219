package storetest

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

func preferences() concept {
	return concept{"Preferences", []promise{
		{"are kept as they are, for each user", preferencesKept},
		{"are patched as RFC 7396 says", preferencesPatched},
		{"patches at the same moment all take effect", preferencesTogether},
		{"are at most 64 KiB of JSON", preferencesRefused},
		{"are not for limited views, and not written through read-only ones", preferencesViews},
	}}
}

func (f *fixture) preferences() map[string]any {
	f.Helper()
	all, err := f.reader.GetPreferences(f.ctx)
	f.check("GetPreferences", err)
	return all
}

func (f *fixture) setPreferences(all map[string]any) map[string]any {
	f.Helper()
	set, err := f.store.SetPreferences(f.ctx, all)
	f.check("SetPreferences", err)
	return set
}

func preferencesKept(f *fixture) {
	f.equal("none", f.preferences(), map[string]any{})
	given := map[string]any{"theme": "dark", "n": 1, "big": json.Number("9007199254740993"), "list": []string{"a"},
		"null": nil, "deep": map[string]any{"日本": true}}
	want := map[string]any{"theme": "dark", "n": 1.0, "big": json.Number("9007199254740993"), "list": []any{"a"},
		"null": nil, "deep": map[string]any{"日本": true}}
	f.equal("as answered", f.setPreferences(given), want)
	given["deep"].(map[string]any)["日本"] = false
	f.equal("as read", f.preferences(), want)
	ann := f.as(souvenir.Access{User: "ann"})
	f.equal("another user's", ann.preferences(), map[string]any{})
	f.equal("set", ann.setPreferences(map[string]any{"theme": "light"}), map[string]any{"theme": "light"})
	f.equal("replaced", f.setPreferences(map[string]any{"a": "b"}), map[string]any{"a": "b"})
	f.equal("as read", f.preferences(), map[string]any{"a": "b"})
	f.equal("emptied", f.setPreferences(nil), map[string]any{})
	f.equal("as read", f.preferences(), map[string]any{})
	f.equal("hers", ann.preferences(), map[string]any{"theme": "light"})
}

func preferencesPatched(f *fixture) {
	for _, step := range []struct{ patch, want string }{
		{`{}`, `{}`},
		{`{"a": {"b": 1, "c": null}, "d": [1, null]}`, `{"a": {"b": 1}, "d": [1, null]}`},
		{`{"a": {"e": "x"}, "nothing": null}`, `{"a": {"b": 1, "e": "x"}, "d": [1, null]}`},
		{`{"a": {"b": null}, "d": {"f": 2}}`, `{"a": {"e": "x"}, "d": {"f": 2}}`},
		{`{"a": "text"}`, `{"a": "text", "d": {"f": 2}}`},
	} {
		got, err := f.store.UpdatePreferences(f.ctx, object(step.patch))
		f.check("UpdatePreferences "+step.patch, err)
		f.equal("after "+step.patch, got, object(step.want))
		f.equal("as read", f.preferences(), object(step.want))
	}
	got, err := f.store.UpdatePreferences(f.ctx, nil)
	f.check("UpdatePreferences", err)
	f.equal("after no patch", got, object(`{"a": "text", "d": {"f": 2}}`))
}

func preferencesTogether(f *fixture) {
	together(func(worker int) {
		s := f.store
		if worker%2 == 1 {
			s = f.reader
		}
		for i := range 5 {
			if _, err := s.UpdatePreferences(f.ctx,
				map[string]any{"shared": map[string]any{fmt.Sprint(worker, "-", i): i}}); err != nil {
				f.Errorf("UpdatePreferences: %v", err)
			}
		}
	})
	f.equal("keys", len(f.preferences()["shared"].(map[string]any)), 5*workers)
}

func preferencesRefused(f *fixture) {
	fits := map[string]any{"a": strings.Repeat("x", 64<<10-8)}
	f.equal("what just fits", f.setPreferences(fits), fits)
	cyclic := map[string]any{}
	cyclic["a"] = cyclic
	deep := map[string]any{}
	for range 100 {
		deep = map[string]any{"a": deep}
	}
	for _, c := range []struct {
		value map[string]any
		kind  *souvenir.Error
		says  string
	}{
		{map[string]any{"b": strings.Repeat("x", 64<<10)}, souvenir.ErrTooLarge, "65536"},
		{map[string]any{"b": strings.Repeat("x", 1<<20)}, souvenir.ErrTooLarge, "65536"},
		{map[string]any{"b": math.NaN()}, souvenir.ErrInvalid, "JSON"},
		{map[string]any{"b": func() {}}, souvenir.ErrInvalid, "JSON"},
		{map[string]any{"b": "\xff"}, souvenir.ErrInvalid, "UTF-8"},
		{cyclic, souvenir.ErrInvalid, "JSON"},
		{deep, souvenir.ErrTooLarge, "64 deep"},
	} {
		_, err := f.store.SetPreferences(f.ctx, c.value)
		f.failsAt("SetPreferences", err, c.kind, "preferences", c.says)
		_, err = f.store.UpdatePreferences(f.ctx, c.value)
		f.failsAt("UpdatePreferences", err, c.kind, "preferences", c.says)
	}
	_, err := f.store.UpdatePreferences(f.ctx, map[string]any{"b": "x"})
	f.failsAt("a patch too many", err, souvenir.ErrTooLarge, "preferences", "65536")
	f.equal("after all refusals", f.preferences(), fits)
}

func preferencesViews(f *fixture) {
	f.setPreferences(map[string]any{"theme": "dark"})
	limited := f.store.As(souvenir.Access{Projects: []string{"p"}})
	reading := f.as(souvenir.Access{ReadOnly: true})
	_, err := limited.GetPreferences(f.ctx)
	f.fails("GetPreferences, limited", err, souvenir.ErrForbidden)
	for what, set := range map[string]func(*souvenir.Store) error{
		"SetPreferences":    func(s *souvenir.Store) error { _, err := s.SetPreferences(f.ctx, nil); return err },
		"UpdatePreferences": func(s *souvenir.Store) error { _, err := s.UpdatePreferences(f.ctx, nil); return err },
	} {
		f.fails(what+", limited", set(limited), souvenir.ErrForbidden)
		f.fails(what+", for reading only", set(reading.store), souvenir.ErrReadOnly)
	}
	f.equal("read", reading.preferences(), map[string]any{"theme": "dark"})
}
