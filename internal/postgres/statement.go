package postgres

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// spelling is PostgreSQL's text for each text of package db that it spells otherwise.
var spelling = []string{
	db.InOrder, `JOIN`,
	db.ListOf, `list_of`,
	db.Within, `strpos`,
	db.Key, `EXISTS (SELECT 1 FROM values_of(m.metadata) e WHERE e.key = ? AND `,
	db.KeyIsText, `e.kind = 'string'`,
	db.KeyIsNumber, `e.kind IN ('number', 'boolean')`,
	db.KeyIsSet, `(coalesce(jsonb_typeof(json_of(m.metadata) -> ?), 'null') <> 'null')`,
	db.OwnRows, `SELECT m.partition_id, k.key, k.value, m.id FROM memory m
		CROSS JOIN LATERAL own_of(lookups_of(m.metadata)) k
		WHERE octet_length(lookups_of(m.metadata)) <= least(?, 2000)`,
	db.OwnLong, `m.metadata <> '{}' AND (octet_length(lookups_of(m.metadata)) > least(?, 2000)
		OR lookups_of(m.metadata) COLLATE "C" < chr(2))`,
	db.OwnOfLong, `'{"long": true}'::jsonb`,
	db.OwnIsText, `jsonb_typeof(o.value) = 'string'`,
	db.OwnIsNumber, `jsonb_typeof(o.value) = 'number'`,
	db.Scalar, `to_jsonb(?)`,
	db.Module, `module_of(metadata)`,
	db.SameContent, `octet_length(content) = octet_length(?1) AND right(content, 16) = right(?1, 16) AND content = ?1`,
	db.Clock, `CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS int8)`,
	db.SliceOf, `bytes_of(`,
	db.SliceAt, `, `,
	db.NoIndex, ``,

	db.ByUpdated, ``,
	db.ByCreated, ``,
	db.ByEvent, ``,
	db.ByDoDont, ``,
	db.ByModule, ``,
	db.ByUID, ``,
	db.ByPassageMemory, ``,
	db.ByActivityStarted, ``,
	db.ByActivityClient, ``,

	// If PostgreSQL does not know the length of a list, it expects few elements in an array, but many rows of a subquery,
	// for which it would read whole tables.
	`NOT IN ` + db.Integers, `<> ALL ` + array(`?`),
	`NOT IN ` + db.Integers1, `<> ALL ` + array(`?1`),
	`NOT IN ` + db.Integers2, `<> ALL ` + array(`?2`),
	`IN ` + db.Integers, `= ANY ` + array(`?`),
	`IN ` + db.Integers1, `= ANY ` + array(`?1`),
	`IN ` + db.Integers2, `= ANY ` + array(`?2`),
	db.Integers, integers(`?`),
	db.Integers1, integers(`?1`),
	db.Integers2, integers(`?2`),
	db.Texts, texts(`?`),
	db.Values, `(SELECT v.value FROM jsonb_array_elements(` + storableOf(`?`) + `) v WHERE v.value <> 'null')`,
	db.Numbered, numbered(`?`),
	db.Numbered1, numbered(`?1`),
	db.Numbered3, numbered(`?3`),
	db.Numbered4, numbered(`?4`),
}

// array converts a list of integers in JSON to an array of PostgreSQL.
func array(parameter string) string { return `(translate(` + parameter + `, '[]', '{}')::int8[])` }

// integers converts a list of integers in JSON to rows. Except for its brackets, the list is an array of PostgreSQL.
func integers(parameter string) string {
	return `(SELECT unnest(translate(` + parameter + `, '[]', '{}')::int8[]))`
}

func texts(parameter string) string {
	return `(SELECT e COLLATE "C" FROM jsonb_array_elements_text(` + storableOf(parameter) +
		`) e WHERE e IS NOT NULL)`
}

// storableOf converts a list of texts and numbers in JSON. A text with U+0000, which equals no stored one, becomes
// null.
func storableOf(parameter string) string {
	return `(SELECT CASE WHEN strpos(l, '\u0000') > 0 THEN regexp_replace(l,
		'"(?:[^"\\]|\\[^u]|\\u(?!0000))*\\u0000(?:[^"\\]|\\.)*"', 'null', 'g') ELSE l END::jsonb
		FROM (SELECT ` + parameter + `) p (l))`
}

func numbered(parameter string) string {
	return `(SELECT place - 1 AS key, value FROM unnest(translate(` + parameter +
		`, '[]', '{}')::int8[]) WITH ORDINALITY AS list (value, place))`
}

// statements translates statements. A parameter has the type of its argument: PostgreSQL would use the type of the
// other operand, and a literal 0 has 32 bits. So there is a text for each combination of types, and NULL is a literal.
type statements struct {
	dialect *db.Dialect
	most    int

	mu      sync.RWMutex
	done    map[string]statement
	inserts map[string]*insert // by statement; nil for others than INSERTs of a row
}

// statement is a text, with the argument of each of its parameters.
type statement struct {
	text string
	args []int
	kind kind
	// constant says that a statement returns the same rows whenever it runs on a snapshot.
	constant bool
	// changes says that the statement changes memories, or rows that memories belong to.
	changes bool
}

// changesMemories matches the statements after which other servers have something to read.
var changesMemories = regexp.MustCompile(
	`(?i)^\s*(INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+(memory|passage|change|partition|collection|project|users)\b`)

// kind classifies a statement for its transaction.
type kind int

const (
	reads  kind = iota // SELECT, WITH, VALUES
	writes             // INSERT, UPDATE, DELETE: it may fail where the transaction goes on
	other
)

func newStatements(most int) *statements {
	return &statements{dialect: db.NewDialect(most, spelling...), most: most, done: map[string]statement{},
		inserts: map[string]*insert{}}
}

// boolean is an argument that is a boolean, or 1 and 0 where an integer is asked for.
type boolean bool

// Int64Value implements pgtype.Int64Valuer.
func (b boolean) Int64Value() (pgtype.Int8, error) {
	if b {
		return pgtype.Int8{Int64: 1, Valid: true}, nil
	}
	return pgtype.Int8{Valid: true}, nil
}

// BoolValue implements pgtype.BoolValuer.
func (b boolean) BoolValue() (pgtype.Bool, error) {
	return pgtype.Bool{Bool: bool(b), Valid: true}, nil
}

// bind returns the text and the arguments of a statement for the driver.
func (s *statements) bind(query string, args []any) (statement, []any, error) {
	values, types, err := values(query, args)
	if err != nil {
		return statement{}, nil, err
	}
	return s.bound(query, values, types)
}

// values converts the arguments of a statement, and returns the type of each: n for NULL, i, f, t, x, b for a boolean,
// or u for a text that no stored one can equal.
func values(query string, args []any) (values []any, types []byte, err error) {
	values, types = make([]any, len(args)), make([]byte, len(args))
	for i, arg := range args {
		if isBoolean(arg) {
			v, _, err := db.ToValue(arg)
			if err != nil {
				return nil, nil, err
			}
			values[i], types[i] = boolean(v == int64(1)), 'b'
			continue
		}
		v, _, err := db.ToValue(arg)
		if err != nil {
			return nil, nil, fmt.Errorf("postgres: argument %d: %w", i+1, err)
		}
		values[i] = v
		switch v := v.(type) {
		case nil:
			types[i] = 'n'
		case int64:
			types[i] = 'i'
		case float64:
			types[i] = 'f'
		case string:
			if types[i] = 't'; !storable(v) {
				if word := firstWord(query); word == "INSERT" || word == "UPDATE" {
					return nil, nil, &Error{Op: "exec", kind: db.ErrConstraint,
						err: fmt.Errorf("argument %d is not UTF-8, or has U+0000: %.100q", i+1, v)}
				}
				types[i] = 'u'
			}
		default:
			types[i] = 'x'
		}
	}
	return values, types, nil
}

// bound returns the text of a statement for values of some types, and the values that are its parameters.
func (s *statements) bound(query string, values []any, types []byte) (statement, []any, error) {
	st, err := s.translate(query, string(types))
	if err != nil {
		return statement{}, nil, err
	}
	bound := make([]any, len(st.args))
	for i, n := range st.args {
		bound[i] = values[n]
	}
	return st, bound, nil
}

// storable reports whether PostgreSQL can store a text.
func storable(text string) bool { return utf8.ValidString(text) && !strings.Contains(text, "\x00") }

func isBoolean(arg any) bool {
	switch b := arg.(type) {
	case bool:
		return true
	case *bool:
		return b != nil
	}
	return false
}

// nulls are literals in place of parameters.
var nulls = map[byte]string{'n': `NULL`, 'u': `(NULL::text COLLATE "C")`}

var casts = map[byte]string{'i': `::int8`, 'f': `::float8`, 't': `::text COLLATE "C"`, 'x': `::bytea`, 'b': ``}

func (s *statements) translate(query, types string) (statement, error) {
	key := types + " " + query
	s.mu.RLock()
	st, ok := s.done[key]
	s.mu.RUnlock()
	if ok {
		return st, nil
	}
	st, err := withParameters(s.dialect.Translate(query), types)
	if err != nil {
		return st, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.done) >= s.most {
		clear(s.done)
	}
	s.done[key] = st
	return st, nil
}

// withParameters writes $1 for ?, or ?1, with the types of the arguments.
func withParameters(query, types string) (statement, error) {
	st := statement{kind: kindOf(query), changes: changesMemories.MatchString(query)}
	st.constant = isConstant(query)
	var text strings.Builder
	places := map[int]int{} // argument -> parameter
	highest := 0
	for i := 0; i < len(query); i++ {
		c := query[i]
		if end := skipped(query, i); end > i {
			text.WriteString(query[i:end])
			i = end - 1
			continue
		}
		if c != '?' {
			text.WriteByte(c)
			continue
		}
		end := i + 1
		for end < len(query) && '0' <= query[end] && query[end] <= '9' {
			end++
		}
		n := highest + 1
		if end > i+1 {
			n, _ = strconv.Atoi(query[i+1 : end])
		}
		i = end - 1
		highest = max(highest, n)
		if n < 1 || n > len(types) {
			return st, fmt.Errorf("postgres: the statement has a parameter %d, and %d arguments: %w", n, len(types), errTooFew)
		}
		if null := nulls[types[n-1]]; null != "" {
			text.WriteString(null)
			continue
		}
		if places[n] == 0 {
			st.args = append(st.args, n-1)
			places[n] = len(st.args)
		}
		cast := casts[types[n-1]]
		if cast == "" {
			fmt.Fprintf(&text, "$%d", places[n])
		} else {
			fmt.Fprintf(&text, "($%d%s)", places[n], cast)
		}
	}
	st.text = text.String()
	return st, nil
}

var errTooFew = errors.New("too few arguments")

// skipped returns the end of a text in quotes or of a comment that begins at i; i if none does.
func skipped(query string, i int) int {
	rest := query[i:]
	switch {
	case rest[0] == '\'' || rest[0] == '"':
		if end := strings.IndexByte(rest[1:], rest[0]); end >= 0 {
			return i + end + 2 // a doubled quote begins another one
		}
		return len(query)
	case strings.HasPrefix(rest, "--"):
		if end := strings.IndexByte(rest, '\n'); end >= 0 {
			return i + end
		}
		return len(query)
	}
	return i
}

func firstWord(query string) string {
	word, _, _ := strings.Cut(strings.TrimLeft(query, " \t\n("), " ")
	word, _, _ = strings.Cut(word, "\n")
	return strings.ToUpper(word)
}

func kindOf(query string) kind {
	switch firstWord(query) {
	case "SELECT", "WITH", "VALUES":
		return reads
	case "INSERT", "UPDATE", "DELETE":
		return writes
	}
	return other
}
