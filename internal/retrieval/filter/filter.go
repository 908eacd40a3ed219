// Package filter compiles the conditions of a search or a listing into SQL, for one caller.
package filter

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

const (
	maxConditions = 32
	// MaxAlternatives is the maximum number of values in a condition.
	MaxAlternatives = 1000
	maxAll          = 64
)

// Condition is the condition on one key. All of its fields that are set must hold.
type Condition struct {
	In  []any // equal to any of these
	Not any   // not equal to this, or not set; a slice: equal to none of its elements
	All []any // for lists: contains all of these
	// Bounds, of one type.
	AtLeast, MoreThan, AtMost, LessThan any

	equal *any // {"eq": ...} of the JSON form
}

// Part is an SQL condition on m, p and c, and its arguments.
type Part struct {
	SQL  SQL
	Args []any

	// Steady means that a match depends only on the memory's own row and tags, whose changes are all logged.
	Steady bool

	Test     SQL // reads the memory instead of an index; empty if SQL uses no index
	TestArgs []any

	own *condition // the condition where metadata are sealed; see [Opened]

	names *names // the condition where names, keys and tags are sealed; see [Opened]
}

// Compile turns conditions, by key, into SQL. All of them must hold. A value is a [Condition], its JSON form as a map,
// or a value that the key must equal; with a slice, any of its elements.
func Compile(v kernel.Viewer, f map[string]any) ([]Part, error) {
	if len(f) > maxConditions {
		return nil, fault.New(fault.KindTooLarge, "filter", "{} has %d keys; at most %d are allowed", len(f),
			maxConditions)
	}
	var parts []Part
	for _, key := range slices.Sorted(maps.Keys(f)) {
		if err := valid.UTF8("filter", key); err != nil {
			return nil, err
		}
		c, err := toCondition(f[key])
		if err != nil {
			return nil, fault.Invalid("filter", "{}.%s%v", fault.Clip(key), err)
		}
		b := conditionBuilder{field: fieldOf(v, key)}
		if err := b.build(c); err != nil {
			kind := fault.KindInvalid
			if errors.Is(err, errTooMany) {
				kind = fault.KindTooLarge
			}
			return nil, fault.New(kind, "filter", "{}.%s%v", fault.Clip(key), err)
		}
		for _, p := range b.parts {
			p.Steady = isSteady(key)
			parts = append(parts, p)
		}
	}
	return parts, nil
}

const allowedOperators = `"eq", "in", "ne", "gte", "gt", "lte", "lt" and "all"`

// toCondition converts any form of a filter's value to a Condition. Like the errors of conditionBuilder, its errors
// follow the name of the key.
func toCondition(value any) (Condition, error) {
	switch v := value.(type) {
	case Condition:
		return v, nil
	case map[string]any:
		return conditionFromJSON(v)
	}
	if values, ok := elements(value); ok {
		return Condition{In: values}, nil
	}
	return Condition{In: []any{value}}, nil
}

// elements returns the elements of a slice of any type.
func elements(value any) ([]any, bool) {
	v := reflect.ValueOf(value)
	if v.Kind() != reflect.Slice || v.Type().Elem().Kind() == reflect.Uint8 {
		return nil, false
	}
	values := make([]any, v.Len())
	for i := range values {
		values[i] = v.Index(i).Interface()
	}
	return values, true
}

func conditionFromJSON(object map[string]any) (Condition, error) {
	var c Condition
	if len(object) == 0 {
		return c, fmt.Errorf(" is an empty object; expected %s", allowedOperators)
	}
	for _, operator := range slices.Sorted(maps.Keys(object)) {
		value := object[operator]
		values, isList := elements(value)
		bounds := map[string]*any{"gte": &c.AtLeast, "gt": &c.MoreThan, "lte": &c.AtMost, "lt": &c.LessThan}
		switch bound := bounds[operator]; {
		case bound != nil && value == nil:
			return c, fmt.Errorf(".%s is null; expected a value", operator)
		case bound != nil:
			*bound = value
		case operator == "eq":
			c.equal = &value
		case operator == "ne":
			c.Not = value
			if value == nil {
				c.Not = []any{nil}
			}
		case (operator == "in" || operator == "all") && !isList:
			return c, fmt.Errorf(".%s is %s; expected a list", operator, jsonobject.Show(value))
		case operator == "in":
			c.In = values
		case operator == "all":
			c.All = values
		default:
			return c, fmt.Errorf(" has the operator %s; expected %s", fault.Show(operator), allowedOperators)
		}
	}
	return c, nil
}

// conditionBuilder turns the condition on one key into SQL. All parts must hold.
type conditionBuilder struct {
	field field
	parts []Part
}

var errTooMany = errors.New("")

func (b *conditionBuilder) build(c Condition) error {
	if c.equal != nil {
		if err := b.anyOf([]any{*c.equal}, false); err != nil {
			return err
		}
	}
	if c.In != nil {
		if err := b.anyOf(c.In, false); err != nil {
			return err
		}
	}
	if c.Not != nil {
		values, isList := elements(c.Not)
		if !isList {
			values = []any{c.Not}
		}
		if err := b.anyOf(values, true); err != nil {
			return err
		}
	}
	if len(c.All) > maxAll {
		return fmt.Errorf(".all has %d values; at most %d are allowed%w", len(c.All), maxAll, errTooMany)
	}
	for _, value := range c.All {
		if err := b.anyOf([]any{value}, false); err != nil {
			return err
		}
	}
	var kind, operator string
	for _, bound := range []struct {
		operator string
		value    any
	}{{` >=`, c.AtLeast}, {` >`, c.MoreThan}, {` <=`, c.AtMost}, {` <`, c.LessThan}} {
		if bound.value == nil {
			continue
		}
		value, err := b.field.value(bound.value)
		if err != nil {
			return err
		}
		if text, isText := value.(string); b.field.order != nil && !(isText && slices.Contains(b.field.order, text)) {
			return fmt.Errorf(" has the bound %s; expected %s", jsonobject.Show(bound.value), fault.OneOf(b.field.order))
		}
		k := "text"
		if _, isText := value.(string); !isText {
			k = "a number"
		}
		if kind != "" && k != kind {
			return fmt.Errorf(" has bounds of two types: %s is %s and %s is %s, which no value is between; give two of one type",
				operator, kind, strings.TrimSpace(bound.operator), k)
		}
		kind, operator = k, strings.TrimSpace(bound.operator)
		var part Part
		part.SQL, part.Args = b.field.compare(bound.operator, value)
		if b.field.test != nil {
			part.Test, part.TestArgs = b.field.test.compare(bound.operator, value)
			part.own = &condition{key: b.field.own, operator: bound.operator, values: []any{value}}
		}
		if b.field.names != nil {
			part.names = &names{field: b.field, operator: bound.operator, values: []any{value}}
		}
		b.parts = append(b.parts, part)
	}
	if len(b.parts) == 0 {
		return fmt.Errorf(" has no condition; give a value, a list, or one of %s", allowedOperators)
	}
	return nil
}

// anyOf adds "equals any of the values", where nil stands for "is not set"; or its negation, which also matches a key
// that is not set.
func (b *conditionBuilder) anyOf(values []any, negate bool) error {
	if len(values) > MaxAlternatives {
		return fmt.Errorf(" has %d values; at most %d are allowed%w", len(values), MaxAlternatives, errTooMany)
	}
	bound, orUnset := []any{}, false
	for _, v := range values {
		if v == nil {
			orUnset = true
			continue
		}
		value, err := b.field.value(v)
		if err != nil {
			return err
		}
		bound = append(bound, value)
	}
	var part Part
	part.SQL, part.Args = b.field.amongOrUnset(bound, orUnset, negate)
	if b.field.test != nil {
		part.Test, part.TestArgs = b.field.test.amongOrUnset(bound, orUnset, negate)
		part.own = &condition{key: b.field.own, values: bound, orUnset: orUnset, not: negate != orUnset}
	}
	if b.field.names != nil {
		part.names = &names{field: b.field, values: bound, orUnset: orUnset, negate: negate}
	}
	b.parts = append(b.parts, part)
	return nil
}

func (f field) amongOrUnset(values []any, orUnset, negate bool) (sql SQL, args []any) {
	if orUnset && len(values) == 0 { // this simple form can use an index, for lists of memories with a key
		sql, args = f.isSet()
		if !negate {
			sql = between(`NOT (`, sql, `)`)
		}
		return sql, args
	}
	sql, args = f.anyOf(values)
	if orUnset {
		isSet, setArgs := f.isSet()
		sql, args = between(`(`, slices.Concat(sql, Plain(` OR NOT `), isSet), `)`), append(args, setArgs...)
	}
	if negate {
		sql = between(`NOT coalesce(`, sql, `, false)`)
	}
	return sql, args
}
