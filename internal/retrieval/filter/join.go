package filter

import (
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// FewRows is the maximum number of memories for which a condition on own metadata is evaluated first.
const FewRows = 256

// Joined is the conjunction of conditions.
type Joined struct {
	SQL     SQL
	Args    []any
	Steady  bool   // as of a [Part]
	Indexed string // the statement that selects the rows of a single condition; "" for several and for other forms
}

// Join combines conditions. If one of them selects few memories by an index, the others are tested only on these.
func Join(tx db.Tx, parts []Part) (j Joined, err error) {
	first, list, err := few(tx, parts)
	if err != nil {
		return j, err
	}
	j.Steady = first < 0 && !slices.ContainsFunc(parts, func(p Part) bool { return !p.Steady })
	if first >= 0 {
		j.SQL, j.Args = inList(), append(j.Args, db.List(list))
	}
	for i, p := range parts {
		if i == first {
			continue
		}
		condition, args := p.SQL, p.Args
		if first >= 0 && len(p.Test) > 0 {
			condition, args = p.Test, p.TestArgs
		}
		j.SQL, j.Args = j.SQL.And(condition), append(j.Args, args...)
	}
	if len(parts) == 1 {
		j.Indexed = parts[0].SQL.statement()
	}
	return j, nil
}

// few returns the first of several indexed conditions on own metadata that selects few memories, and their rows; -1 if
// there is none.
func few(tx db.Tx, parts []Part) (first int, rows []int64, err error) {
	indexed := 0
	for _, p := range parts {
		if len(p.Test) > 0 {
			indexed++
		}
	}
	if indexed < 2 {
		return -1, nil, nil
	}
	for i, p := range parts {
		if len(p.SQL) != 1 || p.SQL[0].kind != ownMeta {
			continue
		}
		rows, err = db.Column[int64](tx, `SELECT r.memory_id FROM (`+p.SQL.statement()+`) r LIMIT ?`,
			append(slices.Clone(p.Args), FewRows+1)...)
		if err != nil || len(rows) <= FewRows {
			return i, rows, err
		}
	}
	return -1, nil, nil
}
