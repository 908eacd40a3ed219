package filter

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealedrows"
)

// sealedNames says how a field with names, keys or tags is stored in a store with user keys, which seals equal ones
// of an owner to the same.
type sealedNames struct {
	column     sealedrows.SealedColumn
	expression string // a value
	join       string // of the table that has it to m, p and c; empty: it is one of them
}

func sealed(f field, column sealedrows.SealedColumn, expression, join string) field {
	f.names = &sealedNames{column, expression, join}
	return f
}

// names is a condition on such a field.
type names struct {
	field           field
	values          []any
	operator        string // of a bound; empty: equals any of the values
	orUnset, negate bool
}

// opened returns the condition in SQL with the values as they are stored.
func (n *names) opened(tx db.Tx, v kernel.Viewer, owners []int64) (sql string, args []any, err error) {
	var stored []string
	if n.operator == "" {
		plain := make([]string, len(n.values))
		for i, value := range n.values {
			plain[i], _ = value.(string)
		}
		stored, err = sealedrows.Forms(tx, n.field.names.column, owners, plain...)
	} else {
		stored, err = n.beyond(tx, v)
	}
	if err != nil {
		return "", nil, err
	}
	values := make([]any, len(stored))
	for i, s := range stored {
		values[i] = s
	}
	if len(values) == 1 { // not in a list, so it is an argument of its own
		values[0] = sealedrows.AsStored(stored[0])
	}
	sql, args = n.field.amongOrUnset(values, n.orUnset, n.negate)
	return sql, args, nil
}

// beyond returns, as they are stored, the values beyond a bound of all memories that the caller can see: it opens each.
func (n *names) beyond(tx db.Tx, v kernel.Viewer) (stored []string, err error) {
	visible, args := v.Visible()
	name := n.field.names
	all, err := db.Column[string](db.Stored(tx), `SELECT DISTINCT `+name.expression+` `+kernel.FromMemory+name.join+
		` WHERE `+name.expression+` IS NOT NULL AND `+visible, args...)
	if err != nil {
		return nil, err
	}
	for _, value := range all {
		plain, err := sealedrows.OpenTexts(tx, []string{value}) // none if its key was erased
		if err != nil {
			return nil, err
		}
		if len(plain) > 0 && isBeyond([]any{plain[0]}, n.operator, n.values[0]) {
			stored = append(stored, value)
		}
	}
	return stored, nil
}
