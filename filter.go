package souvenir

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Filter limits a search or a listing to memories whose fields match. The keys are the known keys of a memory
// (event_type, state, importance, classification, rule_type, tags, related_memory_ids, project_id, project_name,
// collection_name, id, created_at, updated_at) or any key of its own metadata; all of them must match. A value is
//
//   - a string, number or bool: equal to it (for lists, such as tags: contains it);
//   - nil: the key is not set;
//   - a slice of these: equal to any of its elements, as [In];
//   - a [Condition], or a map in its JSON form: {"in": [...]}, {"ne": x}, {"gte": x, "lt": y}, {"all": [...]}.
//
// Times are compared as time.Time, RFC 3339 ("2026-03-01T09:00:00Z") or a date ("2026-03-01"), which means the whole
// day (UTC): times in that day are equal to it, times before the day's end are at most it, and later times are greater.
type Filter map[string]any

// Condition is a [Filter]'s condition on one key. All of its fields that are set must hold.
type Condition struct {
	In  []any // equal to any of these, at most 1,000
	Not any   // not equal to it, or not set; a slice: equal to none of its elements
	All []any // for lists: contains all of these, at most 64
	// Bounds, of one type: numbers, strings, or times.
	AtLeast, MoreThan, AtMost, LessThan any

	equal *any // {"eq": ...} of the JSON form
}

// In matches a key that equals any of the values.
func In[T any](values ...T) Condition { return Condition{In: anys(values)} }

// Not matches a key that does not equal the value or is not set.
func Not(value any) Condition { return Condition{Not: value} }

// All matches lists that contain all of the values.
func All[T any](values ...T) Condition { return Condition{All: anys(values)} }

// Between matches a key that is at least low and at most high.
func Between(low, high any) Condition { return Condition{AtLeast: low, AtMost: high} }

func anys[T any](values []T) []any {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	return list
}

const (
	maxConditions   = 32
	maxAlternatives = 1000
	maxAll          = 64
)

// field is how one key is compared in SQL.
type field struct {
	value func(v any) (any, error) // converts a value for binding; its error says what would be right

	// anyOf is the condition that the field, or one of its elements, is among some values.
	anyOf func(values []any) (sql string, args []any)
	// compare is the condition that the field, or one of its elements, is beyond a bound.
	compare func(operator string, bound any) (sql string, args []any)
	isSet   func() (sql string, args []any)
}

// knownFields are the keys that are columns. All other keys are the caller's own metadata.
var knownFields = map[string]field{
	"event_type":      column("m.event_type", textValue),
	"state":           column("m.state", textValue),
	"importance":      column("m.importance", textValue),
	"classification":  column("m.classification", textValue),
	"rule_type":       column("m.rule_type", textValue),
	"project_id":      column("(SELECT j.uid FROM project j WHERE j.id = p.project_id)", textValue),
	"collection_name": column("c.name", textValue),
	"id":              column("m.uid", textValue),
	"created_at":      timeColumn("m.created_at"),
	"updated_at":      timeColumn("m.updated_at"),
	"tags":            list(`SELECT t.memory_id FROM memory_tag t WHERE true`, `t.tag`),
}

// among continues an expression with the condition that it equals one of the values. A single value is bound as it is,
// several as a list of the given form.
func among(values []any, list string) (sql string, arg any) {
	if len(values) == 1 {
		return ` = ?`, values[0]
	}
	encoded, err := json.Marshal(values)
	if err != nil {
		encoded = []byte("[]") // strings and finite numbers are always JSON
	}
	return ` IN ` + list, string(encoded)
}

func column(expression string, value func(any) (any, error), args ...any) field {
	return field{
		value: value,
		anyOf: func(values []any) (string, []any) {
			is, arg := among(values, db.Texts)
			return expression + is, append(slices.Clone(args), arg)
		},
		compare: func(operator string, bound any) (string, []any) {
			return expression + operator + ` ?`, append(slices.Clone(args), bound)
		},
		isSet: func() (string, []any) { return expression + ` IS NOT NULL`, args },
	}
}

// timeSpan is the time that a value stands for, in microseconds: a day, or a moment, which is 1 µs long.
type timeSpan struct{ from, to int64 }

// timeColumn compares a column of times with moments and with days.
func timeColumn(expression string) field {
	return field{
		value: func(v any) (any, error) { return timeValue(v) },
		anyOf: func(values []any) (string, []any) {
			var moments []any
			var days []int64
			for _, v := range values {
				if span, ok := v.(timeSpan); ok && span.to > span.from+1 {
					days = append(days, span.from)
				} else if ok {
					moments = append(moments, span.from)
				}
			}
			is, moment := among(moments, db.Integers)
			if len(days) == 0 {
				return expression + is, []any{moment}
			}
			const day = 24 * int64(time.Hour/time.Microsecond)
			sql, args := `EXISTS (SELECT 1 FROM `+db.Numbered+` d WHERE `+expression+` >= d.value AND `+expression+
				` < d.value + ?)`, []any{db.List(days), day}
			if len(days) == 1 {
				sql, args = expression+` >= ? AND `+expression+` < ?`, []any{days[0], days[0] + day}
			}
			if len(moments) > 0 {
				sql, args = sql+` OR `+expression+is, append(args, moment)
			}
			return `(` + sql + `)`, args
		},
		compare: func(operator string, bound any) (string, []any) {
			span, _ := bound.(timeSpan)
			switch operator {
			case ` >`:
				return expression + ` >= ?`, []any{span.to}
			case ` <=`:
				return expression + ` < ?`, []any{span.to}
			}
			return expression + operator + ` ?`, []any{span.from}
		},
		isSet: func() (string, []any) { return expression + ` IS NOT NULL`, nil },
	}
}

// inRows begins a condition that selects the matching memories by row, from another table.
const inRows = `m.id IN (`

// list compares the rows of another table, selected as the memories they belong to: one match is enough. The selection
// ends in a condition, for which args are bound.
func list(memories, expression string, args ...any) field {
	return field{
		value: textValue,
		anyOf: func(values []any) (string, []any) {
			is, arg := among(values, db.Texts)
			return inRows + memories + ` AND ` + expression + is + `)`, append(slices.Clone(args), arg)
		},
		compare: func(operator string, bound any) (string, []any) {
			return inRows + memories + ` AND ` + expression + operator + ` ?)`, append(slices.Clone(args), bound)
		},
		isSet: func() (string, []any) { return inRows + memories + `)`, args },
	}
}

// projectNames compares the name of the project.
func projectNames(v viewer) field {
	return column(`(SELECT j.name_key FROM project j WHERE j.id = p.project_id)`, foldedName)
}

// links compares the ids of related memories that the caller can see.
func links(v viewer) field {
	visible, args := v.Visible()
	return list(`SELECT l.memory_id FROM memory_link l JOIN memory r ON r.id = l.related_id
		JOIN partition p ON p.id = r.partition_id
		JOIN collection c ON c.id = p.collection_id WHERE `+visible, `r.uid`, args...)
}

// metadataField compares a key of the caller's own metadata: text with text, numbers and booleans (as 1 and 0) with
// each other; for a list, one matching element is enough.
func metadataField(key string) field {
	// A damaged row is no error here: it matches nothing, and reading it reports the damage.
	return field{
		value: scalarValue,
		anyOf: func(values []any) (string, []any) {
			is, arg := among(values, db.Values)
			return db.Key + `e.value` + is + `)`, []any{key, arg}
		},
		compare: func(operator string, bound any) (string, []any) {
			types := db.KeyIsNumber
			if _, isText := bound.(string); isText {
				types = db.KeyIsText
			}
			return db.Key + types + ` AND e.value` + operator + ` ?)`, []any{key, bound}
		},
		isSet: func() (string, []any) {
			return db.KeyIsSet, []any{key}
		},
	}
}

// fieldOf returns how a key is compared for the caller.
func fieldOf(v viewer, key string) field {
	switch key {
	case "project_name":
		return projectNames(v)
	case "related_memory_ids":
		return links(v)
	}
	if known, ok := knownFields[key]; ok {
		return known
	}
	return metadataField(key)
}

// compile turns the filter into one SQL condition on m, p and c, and its arguments. An empty filter returns "".
func (f Filter) compile(v viewer) (string, []any, error) {
	if len(f) > maxConditions {
		return "", nil, newError(KindTooLarge, "filter", "filter has %d keys; at most %d are allowed", len(f), maxConditions)
	}
	var parts []string
	var args []any
	for _, key := range slices.Sorted(maps.Keys(f)) {
		if err := valid.UTF8("filter", key); err != nil {
			return "", nil, err
		}
		c, err := toCondition(f[key])
		if err != nil {
			return "", nil, invalid("filter", "filter.%s%v", fault.Clip(key), err)
		}
		b := conditionBuilder{field: fieldOf(v, key)}
		if err := b.build(c); err != nil {
			kind := KindInvalid
			if errors.Is(err, errTooMany) {
				kind = KindTooLarge
			}
			return "", nil, newError(kind, "filter", "filter.%s%v", fault.Clip(key), err)
		}
		parts, args = append(parts, b.parts...), append(args, b.args...)
	}
	return strings.Join(parts, ` AND `), args, nil
}

const allowedOperators = `"eq", "in", "ne", "gte", "gt", "lte", "lt" and "all"`

// toCondition converts every form of a filter's value to a Condition. Like the errors of conditionBuilder, its errors
// continue after the name of the key.
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
		return c, fmt.Errorf(" is an empty object; allowed are %s", allowedOperators)
	}
	for _, operator := range slices.Sorted(maps.Keys(object)) {
		value := object[operator]
		values, isList := elements(value)
		bounds := map[string]*any{"gte": &c.AtLeast, "gt": &c.MoreThan, "lte": &c.AtMost, "lt": &c.LessThan}
		switch bound := bounds[operator]; {
		case bound != nil && value == nil:
			return c, fmt.Errorf(".%s is null; a value is expected", operator)
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
			return c, fmt.Errorf(".%s is %s; a list is expected", operator, jsonobject.Show(value))
		case operator == "in":
			c.In = values
		case operator == "all":
			c.All = values
		default:
			return c, fmt.Errorf(" has the operator %s; allowed are %s", show(operator), allowedOperators)
		}
	}
	return c, nil
}

// conditionBuilder turns the condition on one key into SQL. All parts must hold.
type conditionBuilder struct {
	field field
	parts []string
	args  []any
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
		k := "text"
		if _, isText := value.(string); !isText {
			k = "a number"
		}
		if kind != "" && k != kind {
			return fmt.Errorf(" has bounds of two types: %s is %s and %s is %s, which no value is between; give two of one type",
				operator, kind, strings.TrimSpace(bound.operator), k)
		}
		kind, operator = k, strings.TrimSpace(bound.operator)
		b.add(b.field.compare(bound.operator, value))
	}
	if len(b.parts) == 0 {
		return fmt.Errorf(" has no condition; give a value, a list, or one of %s", allowedOperators)
	}
	return nil
}

func (b *conditionBuilder) add(sql string, args []any) {
	b.parts, b.args = append(b.parts, sql), append(b.args, args...)
}

// anyOf adds "equals any of the values", where nil stands for "is not set"; or its negation, which also matches a key
// that is not set.
func (b *conditionBuilder) anyOf(values []any, negate bool) error {
	if len(values) > maxAlternatives {
		return fmt.Errorf(" has %d values; at most %d are allowed%w", len(values), maxAlternatives, errTooMany)
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
	sql, args := b.field.anyOf(bound)
	if orUnset {
		isSet, setArgs := b.field.isSet()
		sql, args = `(`+sql+` OR NOT `+isSet+`)`, append(args, setArgs...)
	}
	if negate {
		sql = `NOT coalesce(` + sql + `, false)`
	}
	b.add(sql, args)
	return nil
}

func textValue(v any) (any, error) {
	if r := reflect.ValueOf(v); r.Kind() == reflect.String {
		return r.String(), valid.UTF8("", r.String())
	}
	return nil, fmt.Errorf(" is %s; a string is expected", jsonobject.Show(v))
}

// foldedName folds a text for comparison with names of projects.
func foldedName(v any) (any, error) {
	text, err := textValue(v)
	if name, ok := text.(string); ok && err == nil {
		return foldname.Key(name), nil
	}
	return nil, err
}

func timeValue(v any) (timeSpan, error) {
	switch v := v.(type) {
	case time.Time:
		return timeSpan{v.UnixMicro(), v.UnixMicro() + 1}, nil
	case string:
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05"} {
			if t, err := time.Parse(layout, v); err == nil {
				return timeSpan{t.UnixMicro(), t.UnixMicro() + 1}, nil
			}
		}
		if t, err := time.Parse(time.DateOnly, v); err == nil {
			return timeSpan{t.UnixMicro(), t.AddDate(0, 0, 1).UnixMicro()}, nil
		}
	}
	return timeSpan{}, fmt.Errorf(
		` is %s; a time is expected, such as "2026-03-01T09:00:00Z", or a day, such as "2026-03-01"`, jsonobject.Show(v))
}

// scalarValue converts a value to its JSON form.
func scalarValue(v any) (any, error) {
	if t, ok := v.(time.Time); ok {
		return t.Format(time.RFC3339Nano), nil // as encoding/json stores it
	}
	if number, ok := v.(json.Number); ok {
		if i, err := number.Int64(); err == nil {
			return i, nil
		}
		if f, err := number.Float64(); err == nil {
			return f, nil
		}
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.String:
		return textValue(v)
	case reflect.Bool:
		if r.Bool() {
			return int64(1), nil
		}
		return int64(0), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return r.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if r.Uint() > math.MaxInt64 {
			return float64(r.Uint()), nil
		}
		return int64(r.Uint()), nil
	case reflect.Float32: // 0.1 is stored as 0.1
		f, err := strconv.ParseFloat(strconv.FormatFloat(r.Float(), 'g', -1, 32), 64)
		if err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f, nil
		}
	case reflect.Float64:
		if f := r.Float(); !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f, nil
		}
	}
	return nil, fmt.Errorf(" is %s; a string, a finite number, true, false, null or a list of these is expected",
		jsonobject.Show(v))
}
