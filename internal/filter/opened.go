package filter

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// condition is a condition on a key of own metadata, as SQL has it in [Part], for metadata that are sealed.
type condition struct {
	key  string
	fits func(elements []any, set bool) bool // of metadata that are not empty
	not  bool                                // the memories are the others
}

// Opened returns the parts with conditions on sealed names, keys and tags replaced by ones on what is stored, and with
// conditions on sealed metadata replaced by the memories that match: it opens the metadata of all that the caller can
// see.
func Opened(tx db.Tx, v kernel.Viewer, parts []Part) ([]Part, error) {
	if !db.Seals(tx) {
		return parts, nil
	}
	owners, err := v.Owners(tx)
	if err != nil {
		return nil, err
	}
	parts = append([]Part{}, parts...)
	for i, p := range parts {
		if p.names != nil {
			if parts[i].SQL, parts[i].Args, err = p.names.opened(tx, v, owners); err != nil {
				return nil, err
			}
		}
	}
	return openedMetadata(tx, v, parts)
}

func openedMetadata(tx db.Tx, v kernel.Viewer, parts []Part) ([]Part, error) {
	matching, opened := map[int][]int64{}, append([]Part{}, parts...)
	for i, p := range parts {
		if p.own != nil {
			matching[i] = []int64{}
		}
	}
	if len(matching) == 0 {
		return parts, nil
	}
	visible, args := v.Visible()
	err := tx.Each(func(row db.Rows) error {
		var id int64
		var metadata []byte
		if err := row.Scan(&id, &metadata); err != nil {
			return err
		}
		object := map[string]any{}
		decoder := json.NewDecoder(bytes.NewReader(metadata))
		decoder.UseNumber()
		if decoder.Decode(&object) != nil {
			return nil //nolint:nilerr // damaged metadata have no keys; reading the memory reports it
		}
		for i := range matching {
			if own := parts[i].own; own.fits(elementsOf(object[own.key])) {
				matching[i] = append(matching[i], id)
			}
		}
		return nil
	}, `SELECT m.id, m.metadata `+kernel.FromMemory+` WHERE m.metadata <> '{}' AND `+visible, args...)
	for i, rows := range matching {
		sql := `(` + InThese + `)`
		if parts[i].own.not {
			sql = `NOT ` + sql
		}
		opened[i] = Part{SQL: sql, Args: []any{db.List(rows)}}
	}
	return opened, err
}

// elementsOf returns the values that a key's value is compared by: texts, numbers, and booleans as numbers, of a list
// each element; and whether it is set.
func elementsOf(value any) (elements []any, set bool) {
	list, is := value.([]any)
	if !is {
		list = []any{value}
	}
	for _, v := range list {
		switch v.(type) {
		case string, json.Number, bool:
			if scalar, err := scalarValue(v); err == nil {
				elements = append(elements, scalar)
			}
		}
	}
	return elements, value != nil
}

// hasAny reports whether one of the elements is one of the values.
func hasAny(elements, values []any) bool {
	for _, e := range elements {
		for _, v := range values {
			if order, comparable := compared(e, v); comparable && order == 0 {
				return true
			}
		}
	}
	return false
}

// isBeyond reports whether one of the elements is beyond a bound.
func isBeyond(elements []any, operator string, bound any) bool {
	for _, e := range elements {
		order, comparable := compared(e, bound)
		if comparable && (operator == ` >=` && order >= 0 || operator == ` >` && order > 0 ||
			operator == ` <=` && order <= 0 || operator == ` <` && order < 0) {
			return true
		}
	}
	return false
}

// compared compares two texts or two numbers.
func compared(a, b any) (order int, comparable bool) {
	switch a := a.(type) {
	case string:
		b, is := b.(string)
		return cmp.Compare(a, b), is
	case int64:
		switch b := b.(type) {
		case int64:
			return cmp.Compare(a, b), true
		case float64:
			return cmp.Compare(float64(a), b), true
		}
	case float64:
		switch b := b.(type) {
		case int64:
			return cmp.Compare(a, float64(b)), true
		case float64:
			return cmp.Compare(a, b), true
		}
	}
	return 0, false
}
