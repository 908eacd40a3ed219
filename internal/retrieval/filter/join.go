package filter

import (
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
)

// FewRows is the maximum number of memories for which a condition on own metadata is evaluated first.
const FewRows = 256

// Joined is the conjunction of conditions.
type Joined struct {
	SQL     string
	Args    []any
	Steady  bool   // as of a [Part]
	Indexed string // Part.Indexed of a single condition; "" for several
}

// Join combines conditions. If one of them selects few memories by an index, the others are tested only on these.
func Join(tx db.Tx, parts []Part) (j Joined, err error) {
	first, list, err := few(tx, parts)
	if err != nil {
		return j, err
	}
	j.Steady = first < 0 && !slices.ContainsFunc(parts, func(p Part) bool { return !p.Steady })
	var conditions []string
	if first >= 0 {
		conditions, j.Args = append(conditions, InThese), append(j.Args, db.List(list))
	}
	for i, p := range parts {
		if i == first {
			continue
		}
		condition, args := p.SQL, p.Args
		if first >= 0 && p.Test != "" {
			condition, args = p.Test, p.TestArgs
		}
		conditions, j.Args = append(conditions, condition), append(j.Args, args...)
	}
	j.SQL = strings.Join(conditions, ` AND `)
	if len(parts) == 1 {
		j.Indexed = parts[0].Indexed()
	}
	return j, nil
}

// few returns the first of several indexed conditions on own metadata that selects few memories, and their rows; -1 if
// there is none.
func few(tx db.Tx, parts []Part) (first int, rows []int64, err error) {
	indexed := 0
	for _, p := range parts {
		if p.Test != "" {
			indexed++
		}
	}
	if indexed < 2 {
		return -1, nil, nil
	}
	for i, p := range parts {
		if !strings.HasPrefix(p.SQL, InOwn) {
			continue
		}
		rows, err = db.Column[int64](tx, `SELECT r.memory_id FROM (`+p.Indexed()+`) r LIMIT ?`,
			append(slices.Clone(p.Args), FewRows+1)...)
		if err != nil || len(rows) <= FewRows {
			return i, rows, err
		}
	}
	return -1, nil, nil
}
