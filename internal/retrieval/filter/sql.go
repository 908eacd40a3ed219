package filter

import (
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// SQL is an SQL condition on m, p and c, in pieces: a piece that selects the matching memories from another table can
// look up each memory there instead, with the same arguments.
type SQL []piece

type piece struct {
	kind kind
	text string
}

type kind int

const (
	plain    kind = iota // any part of a condition
	listed               // the condition that a memory is in a list of rows
	selected             // a statement that selects the matching memories from another table, as memory_id
	ownMeta              // such a statement on own metadata, which usually selects few memories
)

// Plain is a condition that reads the memory, its partition and its collection.
func Plain(text string) SQL { return SQL{{plain, text}} }

// inList is the condition that a memory is in a list of rows.
func inList() SQL { return SQL{{listed, `m.id IN ` + db.Integers}} }

// between puts a condition between two texts.
func between(before string, s SQL, after string) SQL {
	return slices.Concat(Plain(before), s, Plain(after))
}

// And is the condition that both hold. An empty one always does.
func (s SQL) And(other SQL) SQL {
	if len(s) == 0 {
		return other
	}
	return slices.Concat(s, Plain(` AND `), other)
}

// LookedUp returns the condition with each memory looked up in other tables, for a few memories. It does so in own
// metadata only if they are very few, as each look-up there may read all rows of a key in the memory's partition.
func (s SQL) LookedUp(veryFew bool) SQL {
	s = slices.Clone(s)
	for i, p := range s {
		if p.kind == selected || p.kind == ownMeta && veryFew {
			s[i] = piece{plain, `EXISTS (SELECT 1 FROM (` + p.text + `) r WHERE r.memory_id = m.id)`}
		}
	}
	return s
}

func (s SQL) String() string {
	var b strings.Builder
	for _, p := range s {
		if p.kind == selected || p.kind == ownMeta {
			b.WriteString(`m.id IN (` + p.text + `)`)
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// ByRow reports whether the condition selects memories by row, usually few.
func (s SQL) ByRow() bool {
	return len(s) > 0 && s[0].kind == listed || slices.ContainsFunc(s, func(p piece) bool { return p.kind == ownMeta })
}

// Reads reports whether the condition reads another table, or a list of rows, as a whole.
func (s SQL) Reads() bool {
	return slices.ContainsFunc(s, func(p piece) bool { return p.kind != plain })
}

// statement returns the statement that selects the matching memories from another table, as memory_id; "" if the
// condition has another form.
func (s SQL) statement() string {
	if len(s) == 1 && (s[0].kind == selected || s[0].kind == ownMeta) {
		return s[0].text
	}
	return ""
}
