package db

import (
	"strings"
	"sync"
)

// Statements are written once, in the SQL that engines share: coalesce, CASE, RETURNING, ON CONFLICT (with a target, or
// DO NOTHING without one), IS NOT DISTINCT FROM, string_agg, octet_length; lower folds ASCII only, and texts are
// ordered by their bytes (engines with another default declare it in their tables). SQLite's own spellings are
// constants of this package, here and next to [List]. An engine whose SQL differs gives its [Tx] a [Dialect], which
// replaces each of them. SQLite uses them unchanged.
const (
	// Newline is the text of one line feed.
	Newline = "'\n'"

	// InOrder joins tables in the order in which they are written, with ON. In other engines it is JOIN.
	InOrder = `CROSS JOIN`

	// ListOf collects the texts of a group: ` + db.ListOf + `(tag ORDER BY position) is a JSON list of them, "[]"
	// for none.
	ListOf = `json_group_array`

	// Within counts characters: ` + db.Within + `(text, part) is where a part begins, from 1, or 0 if it is
	// missing.
	Within = `instr`

	// KeyIsSet is the condition that a memory's own metadata has the key in the parameter, with a value that is not null.
	// Key begins the condition that the value of a key, or an element of it if it is a list, satisfies the following
	// condition on e.value, up to a closing parenthesis; KeyIsText and KeyIsNumber (with booleans, as 1 and 0) test its
	// type. Damaged metadata has no keys.
	Key = `EXISTS (SELECT 1 FROM ` + keys +
		`, json_each(CASE WHEN k.type = 'array' THEN k.value ELSE json_array(k.value) END) e WHERE k.key = ? AND `
	KeyIsText   = `e.type = 'text'`
	KeyIsNumber = `e.type IN ('integer', 'real', 'true', 'false')`
	KeyIsSet    = `EXISTS (SELECT 1 FROM ` + keys + ` WHERE k.key = ? AND k.type <> 'null')`
	keys        = `json_each(CASE WHEN json_valid(m.metadata) THEN m.metadata ELSE '{}' END) k`

	// OwnRows selects the rows of the table memory_own for a memory m: partition_id, key, value, memory_id. OwnLong is
	// the condition that its metadata is longer than the parameter, in bytes, so that it has a special row instead. For
	// sealed metadata, rows and length are those of the lookups, which follow it on a line of their own; sealed metadata
	// without lookups has the special row, too.
	OwnRows = `SELECT m.partition_id, k.key, CASE WHEN k.type NOT IN ('array', 'object') THEN k.value
			WHEN e.type IN ('null', 'array', 'object') THEN x'' ELSE e.value END, m.id
		FROM memory m, json_each(CASE WHEN json_valid(` + lookups + `) THEN ` + lookups + ` ELSE '{}' END) k, ` +
		`json_each(CASE WHEN k.type = 'array' AND k.value <> '[]' THEN k.value
			ELSE '[null]' END) e
		WHERE k.type <> 'null' AND octet_length(` + lookups + `) <= ?`
	OwnLong = `m.metadata <> '{}' AND (octet_length(` + lookups + `) > ? OR ` + lookups + ` < char(2))`
	lookups = `substr(m.metadata, instr(m.metadata, char(10)) + 1)`
	// OwnOfLong is the value of the special row.
	OwnOfLong = `x'00'`

	// Scalar is a parameter, a text or a number, for comparison with e.value of [Key] or with o.value.
	Scalar = `((?))`

	// OwnIsText and OwnIsNumber test the type of o.value, a value of the table memory_own.
	OwnIsText   = `typeof(o.value) = 'text'`
	OwnIsNumber = `typeof(o.value) IN ('integer', 'real')`

	// Module is the module that a memory names in its metadata, NULL for none, as in the index memory_module.
	Module = `CASE WHEN json_valid(metadata) THEN CASE json_type(metadata, '$.module_name') WHEN 'text' THEN metadata ` +
		`->> '$.module_name' END END`

	// SameContent is the condition that a memory has the content ?1, in the form that the index memory_content
	// supports. With a bare content = ?1 in it, SQLite would substitute ?1 for content in the other two conditions, and
	// use no index.
	SameContent = `octet_length(content) = octet_length(?1) AND substr(content, -16) = substr(?1, -16)
		AND coalesce(content, '') = ?1`

	// Clock is the time by the clock of the database, in microseconds since 1970: the same for all processes on it. It
	// moves on within a transaction; its resolution may be coarser, such as a millisecond.
	Clock = `CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER)`

	// The parts of [Slice].
	SliceOf = `substr(CAST(`
	SliceAt = ` AS BLOB), `

	// The parts of [Quotient]. SQLite divides whole numbers without a fraction.
	QuotientOf = `((0 + (`
	QuotientBy = `)) / (`

	// NoIndex, before a column, keeps SQLite from using an index for it.
	NoIndex = `++`
)

// Slice is the expression for a part of a text, as bytes: length bytes from byte start on, counted from 1. All three
// are expressions.
func Slice(text, start, length string) string {
	return SliceOf + text + SliceAt + start + `, ` + length + `)`
}

// Quotient is the expression for a whole number divided by another, without the remainder: in some engines, / alone
// yields a fraction. Both arguments are expressions.
func Quotient(number, by string) string {
	return QuotientOf + number + QuotientBy + by + `))`
}

// Index hints, for statements where SQLite would choose another index: FROM memory m ` + db.ByUpdated. Other
// engines have no such hints and leave them out.
const (
	ByUpdated         = `INDEXED BY memory_updated`
	ByCreated         = `INDEXED BY memory_created`
	ByEvent           = `INDEXED BY memory_event`
	ByDoDont          = `INDEXED BY memory_do_dont`
	ByModule          = `INDEXED BY memory_module`
	ByUID             = `INDEXED BY sqlite_autoindex_memory_1`
	ByPassageMemory   = `INDEXED BY passage_memory`
	ByActivityStarted = `INDEXED BY activity_started`
	ByActivityClient  = `INDEXED BY activity_client`
)

// Dialect translates statements into an engine's own spelling and caches the results.
type Dialect struct {
	swap *strings.Replacer
	most int

	mu   sync.RWMutex
	done map[string]string
}

// NewDialect builds a Dialect from pairs: a text as written above, and the engine's own. If several match, the
// first wins, so a longer text comes before its prefixes. It caches up to most translations.
func NewDialect(most int, pairs ...string) *Dialect {
	return &Dialect{swap: strings.NewReplacer(pairs...), most: most, done: map[string]string{}}
}

// Translate returns the engine's text of a statement.
func (d *Dialect) Translate(query string) string {
	d.mu.RLock()
	own, ok := d.done[query]
	d.mu.RUnlock()
	if ok {
		return own
	}
	own = d.swap.Replace(query)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.done) >= d.most {
		clear(d.done) // filters make any number of statements; the fixed ones are soon cached again
	}
	d.done[query] = own
	return own
}
