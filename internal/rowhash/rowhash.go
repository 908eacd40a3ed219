// Package rowhash makes hashes of rows of a database, so that a change which nobody has made is found: a byte that a
// disk lost, or a row that is gone. It says how a hash is made and which SQL keeps it; it opens no database.
//
// The hash of a row is over the names and values of its columns that are not NULL, so that a column which is added
// later, empty, changes no hash. The hashes are kept in a table of their own, in other pages than the rows: what is
// lost there is known by what is left here.
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

// The names of the functions in SQL. A hash is called for with the columns' names, joined by commas, and their values.
const (
	FunctionHash = "souvenir_hash" // Hash
	FunctionXor  = "souvenir_xor"  // Xor
)

// pool has the buffers that rows are written to: one hash of one buffer is much cheaper than many small writes.
var pool = sync.Pool{New: func() any { return new([]byte) }}

const keptBuffer = 64 << 10 // larger ones are not kept

// Hash is the first 16 bytes of a SHA-256 over the columns of a row. Names are joined by commas. A value is nil, an
// int64, a float64, a string or a []byte, the types of SQLite; another gives no hash.
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
			return nil, fmt.Errorf("rowhash: %s is a %T, which no row holds", name, value)
		}
	}
	sum := sha256.Sum256(b)
	if cap(b) <= keptBuffer {
		*buffer = b
		pool.Put(buffer)
	}
	return sum[:Size:Size], nil
}

// Xor joins hashes of the rows of a set, in whatever order they come and go; the one that is joined twice is out again.
// A hash of another length stands for damage that is known, and stays.
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
	Kind int    // its number among the hashes; never used for another
	Name string // of the table

	// Key is the column by which a hash is kept: the row's number; or, of a Set, that which its rows belong to.
	Key string
	Set bool // the rows of one key have one hash

	Except []string // columns that are not hashed: counts and times that change all the time, and mean nothing to anybody

	// Doubt is a condition on a row that is new (NEW): where it holds, the row was made of a damaged one and no better.
	// Empty: never.
	Doubt string
}

// Expression is the SQL that gives the hash of a row: the row's name, as in NEW, and its columns.
func (t Table) Expression(row string, columns []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s('%s'", FunctionHash, strings.Join(columns, ","))
	for _, c := range columns {
		fmt.Fprintf(&b, `, %s."%s"`, row, c)
	}
	b.WriteString(")")
	return b.String()
}

// Triggers are the SQL that keeps the hashes of a table in step with its rows, whatever changes them, in a connection:
// the triggers are temporary ones, so that a file can be written by programs that know nothing of this, and what they
// have written is found. An update of a row that was damaged before does not make it sound.
func (t Table) Triggers(columns []string) string {
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
	join := fmt.Sprintf(`INSERT INTO row_hash (kind, id, hash) VALUES (%d, NEW."%s", %s) ON CONFLICT (kind, id) DO UPDATE SET hash = %s;`,
		t.Kind, t.Key, fresh, map[bool]string{false: "excluded.hash", true: FunctionXor + "(hash, excluded.hash)"}[t.Set])
	part := fmt.Sprintf(`DELETE FROM row_hash %s;`, where("OLD"))
	change := fmt.Sprintf(`UPDATE row_hash SET hash = iif(hash = %s, %s, x'') %s;`, before, after, where("OLD"))
	if t.Set {
		part = fmt.Sprintf(`UPDATE row_hash SET hash = %s(hash, %s) %s; DELETE FROM row_hash %s AND hash = zeroblob(%d);`,
			FunctionXor, before, where("OLD"), where("OLD"), Size)
		change = part + " " + join
	}
	return fmt.Sprintf(`
		CREATE TEMP TRIGGER hash_%[1]s_added AFTER INSERT ON main."%[1]s" BEGIN %[2]s END;
		CREATE TEMP TRIGGER hash_%[1]s_changed AFTER UPDATE OF %[3]s ON main."%[1]s" BEGIN %[4]s END;
		CREATE TEMP TRIGGER hash_%[1]s_deleted AFTER DELETE ON main."%[1]s" BEGIN %[5]s END;`,
		t.Name, join, strings.Join(of, ", "), change, part)
}
