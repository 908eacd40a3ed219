package jsonobject

import (
	"reflect"
	"strings"
)

// Fields pairs the JSON names of the fields of a struct, and of structs embedded in it, with pointers to them.
func Fields(of any) map[string]any {
	fields := map[string]any{}
	value := reflect.ValueOf(of).Elem()
	for _, f := range reflect.VisibleFields(value.Type()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = value.FieldByIndex(f.Index).Addr().Interface()
		}
	}
	return fields
}

// List returns a list that JSON writes as [] even if it is nil.
func List[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
