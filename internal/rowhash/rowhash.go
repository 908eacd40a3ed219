// Package rowhash hashes rows of a database, to detect changes that no program made: a byte lost by a disk, or a
// missing row. It defines the hash and the SQL that maintains it; it opens no database.
//
// The hash of a row covers the names and values of its columns that are not NULL, so that adding an empty column
// changes no hash. The hashes are stored in a table of their own, in other pages than the rows, so that a lost row is
// detected by its remaining hash.
package rowhash

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"
)

// Size is the length of a hash in bytes.
const Size = 16

// Names of the functions in SQL. A hash takes the columns' names, joined by commas, and their values.
const (
	FunctionHash = "souvenir_hash" // Hash
	FunctionXor  = "souvenir_xor"  // Xor
)

// pool has buffers for rows: hashing one buffer is much cheaper than many small writes.
var pool = sync.Pool{New: func() any { return new([]byte) }}

const keptBuffer = 64 << 10 // larger ones are not kept

// Hash returns the first 16 bytes of a SHA-256 over the columns of a row. Names are joined by commas. A value is
// nil, an int64, a float64, a string or a []byte, the types of SQLite; any other type gives no hash.
func Hash[V any](names string, values []V) ([]byte, error) {
	buffer, _ := pool.Get().(*[]byte)
	b := (*buffer)[:0]
	for _, value := range values {
		var name string
		name, names, _ = strings.Cut(names, ",")
		if any(value) == nil {
			continue
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(len(name)))
		b = append(b, name...)
		switch v := any(value).(type) {
		case int64:
			b = binary.LittleEndian.AppendUint64(append(b, 'i'), uint64(v))
		case float64:
			b = binary.LittleEndian.AppendUint64(append(b, 'f'), math.Float64bits(v))
		case string:
			b = binary.LittleEndian.AppendUint64(append(b, 't'), uint64(len(v)))
			b = append(b, v...)
		case []byte:
			b = binary.LittleEndian.AppendUint64(append(b, 'b'), uint64(len(v)))
			b = append(b, v...)
		default:
			pool.Put(buffer)
			return nil, fmt.Errorf("rowhash: %s is a %T, which rows cannot hold", name, value)
		}
	}
	sum := sha256.Sum256(b)
	if cap(b) <= keptBuffer {
		*buffer = b
		pool.Put(buffer)
	}
	return sum[:Size:Size], nil
}

// Xor combines the hashes of the rows of a set, independent of their order; combining a hash twice removes it again. A
// hash of another length marks known damage, and stays.
func Xor(a, b []byte) []byte {
	if len(a) != Size || len(b) != Size {
		return []byte{}
	}
	sum := make([]byte, Size)
	for i := range sum {
		sum[i] = a[i] ^ b[i]
	}
	return sum
}

// Table is a table whose rows have hashes.
type Table struct {
	Kind int    // its number among the hashes; never reused for another table
	Name string // of the table

	// Key is the column that identifies a hash: the row's number or, for a Set, the parent of its rows.
	Key string
	Set bool // the rows of one key have one hash

	Except []string // columns that are not hashed: counts and times that change constantly and do not matter

	// Doubt is a condition on a new row (NEW): if it holds, the row was made from a damaged one and is no better.
	// Empty: never.
	Doubt string
}

// Expression returns the SQL for the hash of a row, from the row's name, as in NEW, and its columns.
func (t Table) Expression(row string, columns []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s('%s'", FunctionHash, strings.Join(columns, ","))
	for _, c := range columns {
		fmt.Fprintf(&b, `, %s."%s"`, row, c)
	}
	b.WriteString(")")
	return b.String()
}

// Trigger is a temporary trigger of a table, and its SQL as SQLite stores it: without the word TEMP.
type Trigger struct{ Name, Table, SQL string }

// Triggers returns the triggers that keep a table's hashes in step with its rows, for every change on a connection. The
// triggers are temporary, so that programs without them can write to the file, and their writes are detected. An update
// of a damaged row does not make it valid.
func (t Table) Triggers(columns []string) []Trigger {
	before, after := t.Expression("OLD", columns), t.Expression("NEW", columns)
	of := make([]string, len(columns))
	for i, c := range columns {
		of[i] = `"` + c + `"`
	}
	where := func(row string) string { return fmt.Sprintf(`WHERE kind = %d AND id = %s."%s"`, t.Kind, row, t.Key) }
	fresh := after
	if t.Doubt != "" {
		fresh = fmt.Sprintf("iif(%s, x'', %s)", t.Doubt, after)
	}
	join := fmt.Sprintf(`INSERT INTO row_hash (kind, id, hash) VALUES (%d, NEW."%s", %s) `+
		`ON CONFLICT (kind, id) DO UPDATE SET hash = %s;`,
		t.Kind, t.Key, fresh, map[bool]string{false: "excluded.hash", true: FunctionXor + "(hash, excluded.hash)"}[t.Set])
	part := fmt.Sprintf(`DELETE FROM row_hash %s;`, where("OLD"))
	change := fmt.Sprintf(`UPDATE row_hash SET hash = iif(hash = %s, %s, x'') %s;`, before, after, where("OLD"))
	if t.Set {
		part = fmt.Sprintf(`UPDATE row_hash SET hash = %s(hash, %s) %s; DELETE FROM row_hash %s AND hash = zeroblob(%d);`,
			FunctionXor, before, where("OLD"), where("OLD"), Size)
		change = part + " " + join
	}
	trigger := func(name, event, body string) Trigger {
		name = "hash_" + t.Name + "_" + name
		return Trigger{Name: name, Table: t.Name, SQL: fmt.Sprintf(`CREATE TRIGGER %s AFTER %s ON main."%s" BEGIN %s END`,
			name, event, t.Name, body)}
	}
	return []Trigger{
		trigger("added", "INSERT", join),
		trigger("changed", "UPDATE OF "+strings.Join(of, ", "), change),
		trigger("deleted", "DELETE", part),
	}
}
