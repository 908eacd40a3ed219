package db

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A list is bound as one argument, made by [List], and follows IN: `id IN ` + db.Integers. So the text of a
// statement is the same for a list of any length. The forms with a number name their parameter.
const (
	Integers  = `(SELECT value FROM json_each(?))`
	Integers1 = `(SELECT value FROM json_each(?1))`
	Integers2 = `(SELECT value FROM json_each(?2))`
	Texts     = `(SELECT e.value FROM json_each(?) e)`

	// Values holds integers, floats and texts.
	Values = `(SELECT v.value FROM json_each(?) v)`

	// Numbered follows FROM, with a name: FROM ` + db.Numbered + ` r. Its rows are the integers of a list in
	// r.value and their places in it, from 0, in r.key.
	Numbered  = `(SELECT key, value FROM json_each(?))`
	Numbered1 = `(SELECT key, value FROM json_each(?1))`
	Numbered3 = `(SELECT key, value FROM json_each(?3))`
	Numbered4 = `(SELECT key, value FROM json_each(?4))`
)

// List returns the argument for a list: a JSON array. In JSON, a text that is not UTF-8 would become another one, with
// U+FFFD; it becomes U+0000, which equals no stored text, either.
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
		if slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
			values = slices.Clone(values)
			for i, v := range values {
				if !utf8.ValidString(v) {
					values[i] = "\x00"
				}
			}
		}
		list, _ := json.Marshal(values) // strings always encode
		return string(list)
	}
	return "[]"
}

// OrNull returns the argument for an optional value: NULL for its zero value.
func OrNull[T comparable](value T) any {
	var none T
	if value == none {
		return nil
	}
	return value
}

// ListOrNull returns the argument for a list that is stored as JSON: NULL for nil.
func ListOrNull[T any](list []T) (any, error) {
	if list == nil {
		return nil, nil
	}
	encoded, err := json.Marshal(list)
	return string(encoded), err
}

// ReadList reads a list as [ListOrNull] stores it.
func ReadList[T any](stored *string, list *[]T) error {
	*list = nil
	if stored == nil {
		return nil
	}
	err := json.Unmarshal([]byte(*stored), list)
	if err == nil && *list == nil {
		err = errors.New("null instead of a list")
	}
	return err
}

// LowerList is [List] for words that are compared without regard to case, folded as lower does in SQL.
func LowerList(words ...string) string {
	folded := make([]string, len(words))
	for i, word := range words {
		folded[i] = Lower(word)
	}
	return List(folded)
}

// Lower lowers letters as lower does in SQL.
func Lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
