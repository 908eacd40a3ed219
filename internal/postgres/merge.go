package postgres

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Queued INSERTs of one row with the same text become one statement with many rows: triggers for statements run once
// for all of them, and write the row of a partition once. Otherwise the versions of that row would be read again and
// again until the commit.

// insert is an INSERT of one row whose values are all arguments.
type insert struct {
	head, tail string // INSERT INTO table (columns), and what follows the values
	columns    int
	parent     bool // rows of other tables refer to its rows
}

// newRow is a row that waits for its INSERT.
type newRow struct {
	*insert
	values []any
	types  []byte
}

// parents matches INSERTs into tables whose new rows other queued rows refer to. Other references are checked at the
// COMMIT, or refer to existing rows.
var parents = regexp.MustCompile(`^INSERT INTO memory\s`)

// conflict finds the first column of an INSERT that may update an existing row, and the columns by which rows conflict.
var conflict = regexp.MustCompile(`^INSERT INTO \w+\s+\(\s*(\w+)[^)]*\)\s+VALUES[^A-Z]*ON CONFLICT\s+\(([^)]*)\)`)

// byFirst reports whether rows with different first columns cannot meet in an ON CONFLICT.
func byFirst(query string) bool {
	m := conflict.FindStringSubmatch(query)
	if m == nil {
		return true
	}
	key := strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r <= ' ' })
	return slices.Contains(key, m[1])
}

var insertsRow = regexp.MustCompile(
	`^(INSERT INTO \w+\s+\([\w\s,]+\))\s+VALUES \(\?((?:, \?)*)\)(\s+ON CONFLICT[^?]*)?$`)

// insertOf returns the shape of an INSERT that may be merged with others, nil for any other statement.
func (s *statements) insertOf(query string) *insert {
	s.mu.RLock()
	shape, known := s.inserts[query]
	s.mu.RUnlock()
	if known {
		return shape
	}
	if m := insertsRow.FindStringSubmatch(query); m != nil && byFirst(query) {
		shape = &insert{head: m[1], tail: m[3], columns: strings.Count(m[2], "?") + 1, parent: parents.MatchString(query)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.inserts) >= s.most {
		clear(s.inserts)
	}
	s.inserts[query] = shape
	return shape
}

// merged returns the statements with INSERTs of the same shape merged into one. INSERTs change places only with each
// other.
func merged(all []pending) []pending {
	out := make([]pending, 0, len(all))
	for len(all) > 0 {
		n := 0
		for n < len(all) && all[n].row != nil {
			n++
		}
		if n > 1 {
			out = append(out, mergedRows(all[:n])...)
		} else if n == 1 {
			out = append(out, all[0])
		} else {
			out, n = append(out, all[0]), 1
		}
		all = all[n:]
	}
	return out
}

// mergedRows is merged for INSERTs alone. A row goes into the first INSERT of its shape, but new rows of parents stay
// before rows that may refer to them. A statement with ON CONFLICT must not meet a row twice.
func mergedRows(all []pending) (out []pending) {
	var order []*insert
	groups := map[*insert][]pending{}
	met := map[*insert]map[any]bool{}
	emit := func() {
		for _, shape := range order {
			out = append(out, together(shape, groups[shape])...)
		}
		order = nil
		clear(groups)
		clear(met)
	}
	for _, p := range all {
		shape, first := p.row.insert, p.row.values[0]
		if bytes, is := first.([]byte); is {
			first = string(bytes)
		}
		if shape.tail != "" && met[shape][first] || shape.parent && groups[shape] == nil {
			emit()
		}
		if groups[shape] == nil {
			order, met[shape] = append(order, shape), map[any]bool{}
		}
		groups[shape] = append(groups[shape], p)
		if shape.tail != "" {
			met[shape][first] = true
		}
	}
	emit()
	return out
}

// together makes one statement of rows, unless a column has values of several types.
func together(shape *insert, rows []pending) []pending {
	if len(rows) == 1 {
		return rows
	}
	var lists, names, chosen []string
	var args []any
	for c := range shape.columns {
		list, kind, ok := column(rows, c)
		if !ok {
			return rows
		}
		if list == nil {
			chosen = append(chosen, "NULL")
			continue
		}
		args = append(args, list)
		name := fmt.Sprintf("c%d", c)
		lists, names = append(lists, fmt.Sprintf("$%d::%s[]", len(args), kind)), append(names, name)
		chosen = append(chosen, "r."+name)
	}
	if len(args) == 0 {
		return rows
	}
	text := fmt.Sprintf("%s SELECT %s FROM unnest(%s) AS r (%s)%s", shape.head, strings.Join(chosen, ", "),
		strings.Join(lists, ", "), strings.Join(names, ", "), shape.tail)
	return []pending{{text: text, args: args, work: true}}
}

// column returns the values of a column as an argument and their type; nil if all of them are NULL.
func column(rows []pending, c int) (list any, kind string, ok bool) {
	var of byte
	for _, p := range rows {
		switch t := p.row.types[c]; {
		case t == 'n' || t == of:
		case of == 0:
			of = t
		default:
			return nil, "", false
		}
	}
	switch of {
	case 0:
		return nil, "", true
	case 'i':
		return listOf(rows, c, func(v any) int64 { return v.(int64) }), "int8", true
	case 'b':
		return listOf(rows, c, func(v any) int64 {
			if v.(boolean) {
				return 1
			}
			return 0
		}), "int8", true
	case 'f':
		return listOf(rows, c, func(v any) float64 { return v.(float64) }), "float8", true
	case 't':
		return listOf(rows, c, func(v any) string { return v.(string) }), "text", true
	}
	bytes := make([][]byte, len(rows))
	for i, p := range rows {
		bytes[i], _ = p.row.values[c].([]byte)
	}
	return bytes, "bytea", true
}

// listOf has nil for NULL.
func listOf[T any](rows []pending, c int, convert func(any) T) []*T {
	list := make([]*T, len(rows))
	for i, p := range rows {
		if p.row.types[c] != 'n' {
			v := convert(p.row.values[c])
			list[i] = &v
		}
	}
	return list
}
