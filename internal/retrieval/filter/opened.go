package filter

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// condition is a condition on a key of own metadata, for sealed metadata. [Part] has the same in SQL.
type condition struct {
	key      string
	values   []any  // the key equals one of them; with orUnset, it is set and equals none
	operator string // of a bound, values[0]; empty: there is none
	orUnset  bool   // memories without the key match as well
	not      bool   // all other memories match
}

// Opened replaces conditions on sealed names, keys, tags and metadata by conditions on their stored form, and bounds of
// metadata by the matching memories: it opens the metadata of memories with the key.
func Opened(tx db.Tx, v kernel.Viewer, parts []Part) ([]Part, error) {
	if !sealedrows.Seals(tx) {
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
	return openedMetadata(tx, v, owners, parts)
}

func openedMetadata(tx db.Tx, v kernel.Viewer, owners []int64, parts []Part) ([]Part, error) {
	var unindexed map[int64]map[string]any // of memories, by row
	for i, p := range parts {
		if p.own == nil {
			continue
		}
		if unindexed == nil {
			visible, args := ownPlaces(v)
			var err error
			if unindexed, err = openAll(tx, `SELECT o.memory_id FROM memory_own o WHERE o.partition_id IN `+visible+
				` AND o.key = '' AND o.value = `+db.OwnOfLong, args...); err != nil {
				return nil, err
			}
		}
		var long []int64
		for row, object := range unindexed {
			if p.own.fits(elementsOf(object[p.own.key])) {
				long = append(long, row)
			}
		}
		slices.Sort(long) // the same argument each time
		sql, args, err := p.own.matching(tx, v, owners, ownField(v, p.own.key), long)
		if err != nil {
			return nil, err
		}
		if p.own.not {
			sql = between(`NOT (`, sql, `)`)
		}
		parts[i] = Part{SQL: sql, Args: args, Steady: p.own.operator == ""}
	}
	return parts, nil
}

// openAll opens the sealed metadata of selected memories.
func openAll(tx db.Tx, memories string, args ...any) (map[int64]map[string]any, error) {
	objects := map[int64]map[string]any{}
	return objects, tx.Each(func(row db.Rows) error {
		var id int64
		var metadata []byte
		if err := row.Scan(&id, &metadata); err != nil {
			return err
		}
		var object map[string]any
		decoder := json.NewDecoder(bytes.NewReader(metadata))
		decoder.UseNumber()
		if decoder.Decode(&object) == nil { // damaged metadata have no keys; reading the memory reports it
			objects[id] = object
		}
		return nil
	}, `SELECT m.id, m.metadata FROM memory m WHERE m.id IN (`+memories+`) AND m.metadata < '{'`, args...)
}

// matching returns the condition that a memory is in the index of own metadata, by hashes or by plain values, since a
// store may have rows from before it had keys, or that it is one of some with long metadata. For a bound it opens the
// metadata with the key.
func (c *condition) matching(tx db.Tx, v kernel.Viewer, owners []int64, plain field, long []int64) (sql SQL,
	args []any, err error) {
	keys, values, err := sealedrows.OwnLookups(tx, owners, c.key, c.values)
	if err != nil {
		return nil, nil, err
	}
	visible, args := ownPlaces(v)
	isKey, keyArg := among(keys, db.Texts)
	withKey := `WHERE o.partition_id IN ` + visible + ` AND o.key` + isKey
	args = append(args, keyArg)
	unsealed, unsealedArgs := plain.anyOf(c.values)
	if c.operator != "" {
		unsealed, unsealedArgs = plain.compare(c.operator, c.values[0])
		rows, err := c.beyond(tx, withKey, args, unsealed.String(), unsealedArgs)
		return between(`(`, inList(), `)`), []any{db.List(append(rows, long...))}, err
	}
	isValue, valueArg := among(values, db.Values)
	withValue, valueArgs := withKey+` AND o.value`+isValue, append(slices.Clone(args), valueArg)
	const from = `SELECT o.memory_id FROM memory_own o `
	memories, args := from+withValue, valueArgs
	if c.orUnset {
		memories = from + withKey + ` AND o.memory_id NOT IN (` + from + withValue + `)`
		args = append(slices.Clone(valueArgs[:len(valueArgs)-1]), valueArgs...)
		isSet, setArgs := plain.isSet()
		unsealed, unsealedArgs = between(isSet.String()+` AND NOT (`, unsealed, `)`), append(setArgs, unsealedArgs...)
	}
	const or = ` UNION ALL SELECT m.id FROM memory m WHERE `
	memories, args = memories+or+unsealed.String(), append(args, unsealedArgs...)
	if len(long) > 0 {
		memories, args = memories+or+`m.id IN `+db.Integers, append(args, db.List(long))
	}
	return SQL{{ownMeta, memories}}, args, nil
}

// beyond opens the metadata of memories with the key, and returns those beyond a bound.
func (c *condition) beyond(tx db.Tx, withKey string, args []any, unsealed string, unsealedArgs []any) ([]int64,
	error) {
	objects, err := openAll(tx, `SELECT o.memory_id FROM memory_own o `+withKey, args...)
	if err != nil {
		return nil, err
	}
	rows, err := db.Column[int64](tx, `SELECT m.id FROM memory m WHERE `+unsealed, unsealedArgs...)
	for row, object := range objects {
		if c.fits(elementsOf(object[c.key])) {
			rows = append(rows, row)
		}
	}
	return rows, err
}

// fits reports whether the condition holds for non-empty metadata, given the elements of the key.
func (c *condition) fits(elements []any, set bool) bool {
	switch {
	case c.operator != "":
		return isBeyond(elements, c.operator, c.values[0])
	case c.orUnset:
		return set && !hasAny(elements, c.values)
	}
	return hasAny(elements, c.values)
}

// elementsOf returns the comparable values of a key's value: texts, numbers, and booleans as numbers; of a list, all
// elements. It also reports whether the value is set.
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
