// Package rowhash hashes rows of a database, to detect changes that no program made: a byte lost by a disk, or a
// missing row. It defines the hash and which tables have one; engines maintain it.
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

// Kept is a table whose hashes an engine keeps in step with its rows, by its own triggers, for every change on its
// connections. Programs without these triggers can write to the database, and their writes are detected. In row_hash
// (kind, id, hash), a hash without bytes marks known damage:
//
//   - A new row, or a row of a set, adds its hash: an empty one where Doubt holds. In a set, [Xor] joins the hashes.
//   - A changed row gets its new hash if the stored one is that of the row before, otherwise an empty one: an update of
//     a damaged row does not make it valid. A row of a set takes its old hash from the set and adds its new one.
//   - A deleted row takes its hash away, and a set the hash of its last row.
type Kept struct {
	Table
	Columns []string // hashed ones, in their order
}
