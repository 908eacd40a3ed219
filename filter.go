package souvenir

import (
	"github.com/souvenir-ai/souvenir/internal/filter"
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

// compile turns the filter into one SQL condition on m, p and c, and its arguments. An empty filter returns "".
func (f Filter) compile(v viewer) (string, []any, error) {
	conditions := make(map[string]any, len(f))
	for key, value := range f {
		if c, ok := value.(Condition); ok {
			value = filter.Condition{In: c.In, Not: c.Not, All: c.All, AtLeast: c.AtLeast, MoreThan: c.MoreThan,
				AtMost: c.AtMost, LessThan: c.LessThan}
		}
		conditions[key] = value
	}
	return filter.Compile(v, conditions)
}
