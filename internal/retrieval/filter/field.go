package filter

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// field is how one key is compared in SQL.
type field struct {
	value func(v any) (any, error) // converts a value for binding, or returns an error that says what would be right

	// anyOf is the condition that the field, or one of its elements, is among some values.
	anyOf func(values []any) (sql SQL, args []any)
	// compare is the condition that the field, or one of its elements, is beyond a bound.
	compare func(operator string, bound any) (sql SQL, args []any)
	isSet   func() (sql SQL, args []any)
	order   []string // all values, the lowest first, where bounds follow this order; else nil

	names *sealedNames // where its values are sealed; else nil

	test *field // the same comparison on the memory itself, where the conditions above read an index; else nil
	own  string // the key, where test is set
}

// knownFields are the keys that are columns. All other keys are the caller's own metadata.
var knownFields = map[string]field{
	"event_type":      column("m.event_type", textValue),
	"state":           column("m.state", textValue),
	"importance":      ordered(column("m.importance", textValue), kernel.Importances),
	"classification":  column("m.classification", textValue),
	"rule_type":       column("m.rule_type", textValue),
	"project_id":      projectIDs(),
	"collection_name": sealed(column("c.name", textValue), sealedrows.CollectionName, `c.name`, ``),
	"id":              column("m.uid", textValue),
	"created_at":      timeColumn("m.created_at"),
	"updated_at":      timeColumn("m.updated_at"),
	"event_time":      timeColumn("m.event_time"),
	"key":             sealed(column("m.key", textValue), sealedrows.MemoryKey, `m.key`, ``),
	"tags": sealed(list(`SELECT t.memory_id FROM memory_tag t WHERE true`, `t.tag`), sealedrows.Tag, `t.tag`,
		` JOIN memory_tag t ON t.memory_id = m.id`),
}

// isSteady reports whether conditions on a key are steady, see [Part]. The index of own metadata follows the memory.
func isSteady(key string) bool {
	switch key {
	case "project_id", "project_name", "collection_name", "related_memory_ids":
		return false
	}
	return true
}

// among continues an expression with the condition that it equals one of the values. A single value is bound as it is,
// several as a list of the given form.
func among(values []any, list string) (sql string, arg any) {
	if len(values) == 1 {
		if list == db.Values {
			return ` = ` + db.Scalar, values[0]
		}
		return ` = ?`, values[0]
	}
	encoded, err := json.Marshal(values)
	if err != nil || values == nil {
		encoded = []byte("[]") // strings and finite numbers are always JSON
	}
	return ` IN ` + list, string(encoded)
}

func column(expression string, value func(any) (any, error), args ...any) field {
	return field{
		value: value,
		anyOf: func(values []any) (SQL, []any) {
			is, arg := among(values, db.Texts)
			return Plain(expression + is), append(slices.Clone(args), arg)
		},
		compare: func(operator string, bound any) (SQL, []any) {
			return Plain(expression + operator + ` ?`), append(slices.Clone(args), bound)
		},
		isSet: func() (SQL, []any) { return Plain(expression + ` IS NOT NULL`), args },
	}
}

// timeSpan is the time that a value stands for, in microseconds: a day, or a moment, which is 1 µs long.
type timeSpan struct{ from, to int64 }

// timeColumn compares a column of times with moments and with days.
func timeColumn(expression string) field {
	return field{
		value: func(v any) (any, error) { return timeValue(v) },
		anyOf: func(values []any) (SQL, []any) {
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
				return Plain(expression + is), []any{moment}
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
			return Plain(`(` + sql + `)`), args
		},
		compare: func(operator string, bound any) (SQL, []any) {
			span, _ := bound.(timeSpan)
			switch operator {
			case ` >`:
				return Plain(expression + ` >= ?`), []any{span.to}
			case ` <=`:
				return Plain(expression + ` < ?`), []any{span.to}
			}
			return Plain(expression + operator + ` ?`), []any{span.from}
		},
		isSet: func() (SQL, []any) { return Plain(expression + ` IS NOT NULL`), nil },
	}
}

// list compares the rows of another table. memories selects the memories they belong to, and ends in a condition with
// args; one matching row is enough.
func list(memories, expression string, args ...any) field {
	return field{
		value: textValue,
		anyOf: func(values []any) (SQL, []any) {
			is, arg := among(values, db.Texts)
			return SQL{{selected, memories + ` AND ` + expression + is}}, append(slices.Clone(args), arg)
		},
		compare: func(operator string, bound any) (SQL, []any) {
			return SQL{{selected, memories + ` AND ` + expression + operator + ` ?`}}, append(slices.Clone(args), bound)
		},
		isSet: func() (SQL, []any) { return SQL{{selected, memories}}, args },
	}
}

// ordered compares with bounds by the order of the values.
func ordered(f field, order []string) field {
	f.order = order
	f.compare = func(operator string, bound any) (SQL, []any) {
		text, _ := bound.(string)
		at := slices.Index(order, text)
		fitting := order[:at]
		switch operator {
		case ` >=`:
			fitting = order[at:]
		case ` >`:
			fitting = order[at+1:]
		case ` <=`:
			fitting = order[:at+1]
		}
		values := make([]any, len(fitting))
		for i, value := range fitting {
			values[i] = value
		}
		return f.anyOf(values)
	}
	return f
}

// projectIDs compares the id of the project. A value with a slash, which no id has, is OWNER/ID, of all owners with
// that id or name.
func projectIDs() field {
	ids := column("(SELECT j.uid FROM project j WHERE j.id = p.project_id)", textValue)
	of := func(owner string) field {
		return column("(SELECT "+owner+" || '/' || j.uid FROM project j JOIN users u ON u.id = j.owner_id "+
			"WHERE j.id = p.project_id)", textValue)
	}
	byID, byName, f := of("u.uid"), of("u.name_key"), ids
	f.anyOf = func(values []any) (SQL, []any) {
		var bare, owned, named []any
		for _, v := range values {
			ref, _ := v.(string)
			if slash := strings.LastIndexByte(ref, '/'); slash >= 0 {
				owned, named = append(owned, ref), append(named, foldname.Key(ref[:slash])+ref[slash:])
			} else {
				bare = append(bare, v)
			}
		}
		if len(owned) == 0 {
			return ids.anyOf(values)
		}
		isID, args := byID.anyOf(owned)
		isName, nameArgs := byName.anyOf(named)
		sql, args := slices.Concat(isID, Plain(` OR `), isName), append(args, nameArgs...)
		if len(bare) > 0 {
			isBare, bareArgs := ids.anyOf(bare)
			sql, args = slices.Concat(sql, Plain(` OR `), isBare), append(args, bareArgs...)
		}
		return between(`(`, sql, `)`), args
	}
	return f
}

// projectNames compares the name of the project.
func projectNames(v kernel.Viewer) field {
	return sealed(column(`(SELECT j.name_key FROM project j WHERE j.id = p.project_id)`, foldedName),
		sealedrows.ProjectNameKey,
		`j.name_key`, ` JOIN project j ON j.id = p.project_id`)
}

// links compares the ids of related memories that the caller can see.
func links(v kernel.Viewer) field {
	visible, args := v.Visible()
	return list(`SELECT l.memory_id FROM memory_link l JOIN memory r ON r.id = l.related_id
		JOIN partition p ON p.id = r.partition_id
		JOIN collection c ON c.id = p.collection_id WHERE `+visible, `r.uid`, args...)
}

// OwnPrefix begins a key that always means the caller's own metadata.
const OwnPrefix = kernel.CustomKey + "."

// fieldOf returns how a key is compared for the caller.
func fieldOf(v kernel.Viewer, key string) field {
	if own, is := strings.CutPrefix(key, OwnPrefix); is {
		return ownField(v, own)
	}
	switch key {
	case "project_name":
		return projectNames(v)
	case "related_memory_ids":
		return links(v)
	}
	if known, ok := knownFields[key]; ok {
		return known
	}
	return ownField(v, key)
}
