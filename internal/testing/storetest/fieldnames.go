package storetest

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// fieldNames are the names of Go's arguments in errors.
func fieldNames() concept {
	return concept{"FieldNames", []promise{
		{"every refusal names a field of the struct that was given", fieldsAreNamed},
	}}
}

// parameters is a struct that a method takes. The method is called with one.
type parameters struct {
	method string
	valid  reflect.Value
	call   func(f *fields, p reflect.Value) error
}

// fields is a fixture with the items that the methods need.
type fields struct {
	*fixture
	known, file, ann string // ids of a memory, a file and a user
}

// given describes a method by the valid value of its parameter struct and a call, a func(*fields, P) error. It is not
// generic: it would be compiled for each of many structs.
func given(method string, valid, call any) parameters {
	return parameters{method, reflect.ValueOf(valid), func(f *fields, p reflect.Value) error {
		err, _ := reflect.ValueOf(call).Call([]reflect.Value{reflect.ValueOf(f), p})[0].Interface().(error)
		return err
	}}
}

func fieldsAreNamed(f *fixture) {
	ann, err := f.store.Accounts().AddUser(f.ctx, souvenir.NewUser{Name: "ann", Role: souvenir.RoleAdmin,
		Password: "a cat in a hat"})
	f.check("AddUser", err)
	_, err = f.store.Accounts().AddUser(f.ctx, souvenir.NewUser{Name: "ben"})
	f.check("AddUser", err)
	f.addCollection(souvenir.NewCollection{Name: "notes"})
	in := &fields{f, f.add(souvenir.NewMemory{Content: "a kettle", ProjectName: "p"}).ID, "", ann.ID}
	file, err := f.store.AddFile(f.ctx, souvenir.NewFile{Filename: "x"}, strings.NewReader("x"))
	f.check("AddFile", err)
	in.file = file.ID
	for _, p := range parameterStructs() {
		for _, wrong := range wrongFields(p.valid) {
			what := fmt.Sprintf("%s with %s = %v", p.method, wrong.path, wrong.value)
			err := p.call(in, wrong.of)
			var known *souvenir.Error
			if !errors.As(err, &known) {
				continue
			}
			namesAField(f, what, known)
			if known.Argument == "" || known.Kind != souvenir.KindInvalid && known.Kind != souvenir.KindTooLarge {
				continue // for a missing item, for example, another field may be the wrong one
			}
			want := p.valid.Type().Name() + "." + wrong.path
			if !strings.HasPrefix(known.Field+".", want+".") && !strings.HasPrefix(want+".", known.Field+".") {
				f.Errorf("%s: got the field %s, want %s: %v", what, known.Field, want, err)
			}
		}
	}
}

// wrongField is a struct with a wrong value in one field.
type wrongField struct {
	of    reflect.Value
	path  string
	value any
}

// wrongFields returns the struct with each wrong value for each of its fields.
func wrongFields(valid reflect.Value) []wrongField {
	var all []wrongField
	for _, field := range reflect.VisibleFields(valid.Type()) {
		if !field.IsExported() || field.Anonymous {
			continue
		}
		of := func(value reflect.Value, path string, shown any) {
			changed := reflect.New(valid.Type()).Elem()
			changed.Set(valid)
			changed.FieldByIndex(field.Index).Set(value)
			all = append(all, wrongField{changed, path, shown})
		}
		t := field.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		back := func(value reflect.Value) reflect.Value {
			if field.Type.Kind() != reflect.Pointer {
				return value
			}
			pointer := reflect.New(t)
			pointer.Elem().Set(value)
			return pointer
		}
		if t.Kind() == reflect.Struct && strings.HasSuffix(t.PkgPath(), "/souvenir") {
			inner := valid.FieldByIndex(field.Index)
			if inner.Kind() == reflect.Pointer {
				inner = reflect.Zero(t)
			}
			for _, wrong := range wrongFields(inner) {
				of(back(wrong.of), field.Name+"."+wrong.path, wrong.value)
			}
			continue
		}
		for _, value := range wrongValues(t) {
			of(back(value), field.Name, value)
		}
	}
	return all
}

// wrongValues returns the values of a type that are invalid in every field, if there are any.
func wrongValues(t reflect.Type) []reflect.Value {
	var values []any
	switch t.Kind() {
	case reflect.String:
		values = []any{"\xff", "a\x00b\n"}
	case reflect.Int, reflect.Int64:
		values = []any{math.MinInt64 + 1, math.MaxInt64 - 1}
	case reflect.Float64:
		values = []any{math.NaN(), 1e9}
	case reflect.Slice:
		for _, value := range wrongValues(t.Elem()) {
			list := reflect.MakeSlice(t, 1, 1)
			list.Index(0).Set(value)
			values = append(values, list.Interface())
		}
	case reflect.Float32:
		values = []any{math.NaN()}
	case reflect.Map:
		values = []any{map[string]any{"\xff": "x"}, map[string]any{"a": func() {}}}
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			values = []any{time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)}
		}
	}
	all := make([]reflect.Value, 0, len(values))
	for _, value := range values {
		if v := reflect.ValueOf(value); v.CanConvert(t) {
			all = append(all, v.Convert(t))
		}
	}
	return all
}

// structs are the parameter structs by name.
var structs = sync.OnceValue(func() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, p := range parameterStructs() {
		all[p.valid.Type().Name()] = p.valid.Type()
	}
	return all
})

// ofWhatIsStored has arguments that errors may name although the caller did not give them: properties of a stored
// memory or a view.
var ofWhatIsStored = map[string]souvenir.Kind{
	"event_type": souvenir.KindForbidden, // of an identity
	"key":        souvenir.KindConflict,  // of a memory that moves
	"project_id": souvenir.KindForbidden, // of a view limited to projects
	"rule_type":  souvenir.KindConflict,  // of a rule that is restored
}

// namesAField checks that an error about an argument names its field in Go, and that this field exists. The name of a
// parameter has no dot.
func namesAField(f *fixture, what string, err *souvenir.Error) {
	f.Helper()
	if err.Argument == "" || err.Field == "" && ofWhatIsStored[err.Argument] == err.Kind {
		return
	}
	if err.Field == "" {
		f.Errorf("%s: got no field for the argument %s, want one: %v", what, err.Argument, err)
		return
	}
	if name, path, isField := strings.Cut(err.Field, "."); isField {
		if t, ok := structs()[name]; !ok || !hasField(t, path) {
			f.Errorf("%s: got the field %s for the argument %s, want one that exists", what, err.Field, err.Argument)
		}
	}
	rest, begins := strings.CutPrefix(err.Message, err.Argument)
	if want := err.Field + rest; begins && strings.HasPrefix(rest, " ") && !strings.Contains(rest, "_") &&
		err.Error() != want {
		f.Errorf("%s: got the text %q, want %q", what, err, want)
	}
}

// hasField reports whether a struct has the field of a path. After a map comes one of its keys.
func hasField(t reflect.Type, path string) bool {
	name, rest, more := strings.Cut(path, ".")
	field, ok := t.FieldByName(name)
	if !ok || !field.IsExported() {
		return false
	}
	t = field.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return !more || t.Kind() == reflect.Map || t.Kind() == reflect.Struct && hasField(t, rest)
}
