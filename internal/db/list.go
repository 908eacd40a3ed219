package db

import (
	"encoding/json"
	"strconv"
)

// A list is bound as one argument, made by [List], and stands behind IN: `id IN ` + db.Integers. Engines replace these
// texts where they spell them otherwise; so the two differ.
const (
	Integers = `(SELECT value FROM json_each(?))`
	Texts    = `(SELECT e.value FROM json_each(?) e)`
)

// List is the argument for a list: a JSON array.
func List[T int64 | string](values []T) string {
	switch values := any(values).(type) {
	case []int64:
		list := []byte{'['}
		for i, v := range values {
			if i > 0 {
				list = append(list, ',')
			}
			list = strconv.AppendInt(list, v, 10)
		}
		return string(append(list, ']'))
	case []string:
		if values == nil {
			return "[]"
		}
		list, _ := json.Marshal(values) // strings always have a form
		return string(list)
	}
	return "[]"
}
