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
