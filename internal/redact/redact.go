// Package redact prints values without the secrets in them.
package redact

import (
	"fmt"
	"reflect"
	"slices"
)

// Format prints a struct as %+v does, with some of its fields hidden. Types with a secret call it for every verb of
// fmt, since values get into messages and logs by mistake.
func Format(f fmt.State, value any, hidden ...string) {
	v := reflect.ValueOf(value)
	_, _ = fmt.Fprint(f, "{")
	for i := range v.NumField() {
		name, separator := v.Type().Field(i).Name, " "
		if i == 0 {
			separator = ""
		}
		if slices.Contains(hidden, name) && !v.Field(i).IsZero() {
			_, _ = fmt.Fprintf(f, "%s%s:[hidden]", separator, name)
		} else {
			_, _ = fmt.Fprintf(f, "%s%s:%+v", separator, name, v.Field(i).Interface())
		}
	}
	_, _ = fmt.Fprint(f, "}")
}
