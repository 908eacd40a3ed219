package souvenir

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// Types whose JSON cannot be read back: a standard defines it, or it leaves parts out on purpose.
var writtenOnly = map[string]string{
	"Client":           "RFC 7591's names, without what is the store's own",
	"RegisteredClient": "RFC 7591, section 3.2.1",
	"SigningKey":       "RFC 7517, without the private key",
	"DeletedMemory":    "the memory alone; the rest is for RestoreMemory",
	"Usage":            "without the quotas",
	"FileReader":       "the file's bytes are read, not written as JSON",
}

// resultTypes returns the structs of this package that its methods return, and those within them.
func resultTypes() map[string]reflect.Type {
	found := map[string]reflect.Type{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			add(t.Elem())
		case reflect.Map:
			add(t.Elem())
		case reflect.Func: // an iterator
			for i := range t.NumIn() {
				add(t.In(i))
			}
		case reflect.Struct:
			if t.PkgPath() != reflect.TypeFor[Store]().PkgPath() || t == reflect.TypeFor[Store]() || found[t.Name()] != nil ||
				t == reflect.TypeFor[Error]() {
				return
			}
			found[t.Name()] = t
			for i := range t.NumField() {
				if t.Field(i).IsExported() {
					add(t.Field(i).Type)
				}
			}
		}
	}
	for _, method := range methodsOf(&Store{}) {
		for out := range method.Type().NumOut() {
			add(method.Type().Out(out))
		}
	}
	add(reflect.TypeFor[Group]())
	return found
}

// fillAll sets each field to a nonzero value.
func fillAll(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAll(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fillAll(v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			fillAll(v.Index(i), n)
		}
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillAll(key, n)
		fillAll(value, n)
		v.SetMapIndex(key, value)
	case reflect.Interface:
		v.Set(reflect.ValueOf(fmt.Sprint("any", *n)))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.UnixMicro(1_790_000_000_123_456 + int64(*n)).UTC()))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillAll(v.Field(i), n)
			}
		}
		fillDocument(v)
	}
}

// fillDocument gives todos a document, which their JSON is made from.
func fillDocument(v reflect.Value) {
	content := five(map[Section]string{SectionTasks: "## Tasks\n- [ ] T1 boil\n- [x] T2 pour"})
	document, _ := ParseTodo(content)
	switch todo := v.Addr().Interface().(type) {
	case *StoredRule:
		todo.Similar = nil // a project has one rule of each type, so none is similar
	case *Todo:
		todo.Content, todo.Document = content, document
	case *StoredTodo:
		todo.Content, todo.Document, todo.Similar = content, document, nil
	}
}

var jsonName = regexp.MustCompile(`^[a-z0-9_]+$`)

// jsonNames calls fn for each name in a JSON value.
func jsonNames(value any, fn func(name string)) {
	switch v := value.(type) {
	case map[string]any:
		for name, value := range v {
			fn(name)
			jsonNames(value, fn)
		}
	case []any:
		for _, value := range v {
			jsonNames(value, fn)
		}
	}
}

func TestResultsHaveOneJSONForm(t *testing.T) {
	types := resultTypes()
	for _, name := range slices.Sorted(maps.Keys(types)) {
		if name == "FileReader" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			n := 0
			value := reflect.New(types[name])
			fillAll(value.Elem(), &n)
			encoded, err := json.Marshal(value.Interface())
			if err != nil {
				t.Fatal(err)
			}
			var plain any
			if err := json.Unmarshal(encoded, &plain); err != nil {
				t.Fatal(err)
			}
			jsonNames(plain, func(name string) {
				if !jsonName.MatchString(name) {
					t.Errorf("got a key named %q, want a valid name: %s", name, encoded)
				}
			})
			if writtenOnly[name] != "" {
				return
			}
			read := reflect.New(types[name])
			if err := json.Unmarshal(encoded, read.Interface()); err != nil {
				t.Fatal(err)
			}
			again, err := json.Marshal(read.Interface())
			if err != nil || string(again) != string(encoded) {
				t.Errorf("read and written again: got\n%s, %v; want\n%s", again, err, encoded)
			}
			if !hidden(types[name]) && !reflect.DeepEqual(read.Interface(), value.Interface()) {
				t.Errorf("read back it is\n%+v; it was\n%+v, want it the same", read, value)
			}
		})
	}
}

// hidden reports whether a type has fields that are missing in its JSON.
func hidden(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return hidden(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); t != reflect.TypeFor[time.Time]() &&
				(!f.IsExported() || f.Tag.Get("json") == "-" || hidden(f.Type)) {
				return t != reflect.TypeFor[Todo]() && t != reflect.TypeFor[StoredTodo]()
			}
		}
	}
	return false
}

// drawMemory draws a memory as callers and the store make them. Its own keys may have the names of known keys.
func drawMemory(t *rapid.T) Memory {
	word := rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"active", "東京", "<b>&\u2028", "a\"\\\x00", "do"}))
	list := rapid.OneOf(rapid.Just([]string(nil)),
		rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "tag with space", ""}), 1, 3))
	value := rapid.SampledFrom([]any{nil, true, 1.5, json.Number("12345678901234567890"), "", "text", []any{},
		[]any{"x", 1.0}, []any{"x"}, map[string]any{"state": "deep"}})
	key := rapid.OneOf(rapid.SampledFrom(kernel.KnownKeys),
		rapid.SampledFrom([]string{"", "own", "id", "content", "metadata", "ünï"}))
	micros := rapid.Int64Range(-62_135_596_800_000_000, 253_402_300_799_999_999) // years 1 to 9999
	return Memory{
		ID: word.Draw(t, "id"), Collection: word.Draw(t, "collection"), Owner: word.Draw(t, "owner"),
		Content:   word.Draw(t, "content"),
		EventType: word.Draw(t, "event type"), State: word.Draw(t, "state"), ProjectID: word.Draw(t, "project"),
		ProjectName: word.Draw(t, "name"),
		Importance:  Importance(word.Draw(t, "importance")), Classification: Classification(word.Draw(t, "class")),
		RuleType: RuleType(word.Draw(t, "rule")),
		Tags:     list.Draw(t, "tags"), Related: list.Draw(t, "related"),
		Metadata: rapid.MapOfN(key, value, 0, 4).Draw(t, "metadata"),
		Revision: rapid.IntRange(0, 1<<40).Draw(t, "revision"), CreatedAt: kernel.ToTime(micros.Draw(t, "created")),
		UpdatedAt: kernel.ToTime(micros.Draw(t, "updated")),
	}
}

func TestMemoriesRoundTripThroughJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMemory(t)
		encoded, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var read Memory
		if err := json.Unmarshal(encoded, &read); err != nil {
			t.Fatalf("%v: %s", err, encoded)
		}
		again, err := json.Marshal(read)
		if err != nil || string(again) != string(encoded) {
			t.Fatalf("read and written again: got\n%s, %v; want\n%s", again, err, encoded)
		}
		if !read.CreatedAt.Equal(m.CreatedAt) || !read.UpdatedAt.Equal(m.UpdatedAt) {
			t.Fatalf("the times are %v and %v, want created at %v and updated at %v", read.CreatedAt, read.UpdatedAt,
				m.CreatedAt, m.UpdatedAt)
		}
		for _, known := range kernel.KnownKeys {
			delete(m.Metadata, known) // the store keeps none of these among a memory's own keys
		}
		encoded, err = json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(encoded, &read); err != nil || !reflect.DeepEqual(read, m) {
			t.Fatalf("read back it is\n%#v, %v; want no error and\n%#v", read, err, m)
		}
	})
}

func TestInvalidMemoryJSONIsRefused(t *testing.T) {
	for _, given := range []string{`[]`, `{"metadata":[]}`, `{"created_at":"yesterday"}`, `{"id":7}`,
		`{"revision":"one"}`} {
		m := Memory{ID: "before"}
		if err := json.Unmarshal([]byte(given), &m); err == nil || m.ID != "before" {
			t.Errorf("%s gives %+v, %v; want ID \"before\"", given, m, err)
		}
	}
	m := Memory{ID: "before"}
	if err := json.Unmarshal([]byte(`null`), &m); err != nil || m.ID != "before" {
		t.Errorf("null gives %+v, %v; want ID \"before\"", m, err)
	}
	var hits struct{ Hits []Hit }
	if err := json.Unmarshal([]byte(strings.Repeat(" ", 3)+`{"hits":[{"id":"a","rank":2}]}`), &hits); err != nil ||
		hits.Hits[0].Rank != 2 || hits.Hits[0].ID != "a" {
		t.Errorf(`got %+v, %v, want no error, rank 2 and ID "a"`, hits, err)
	}
}
