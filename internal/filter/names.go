package filter

import (
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// sealedNames says how a field with names, keys or tags is stored in a store with keys of users, which seals equal ones
// of an owner to the same.
type sealedNames struct {
	column     db.SealedColumn
	expression string // a value
	join       string // of the table that has it to m, p and c; empty: it is one of them
}

func sealed(f field, column db.SealedColumn, expression, join string) field {
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
	var plain []string
	if n.operator == "" {
		for _, value := range n.values {
			text, _ := value.(string)
			plain = append(plain, text)
		}
	} else if plain, err = n.beyond(tx, v); err != nil {
		return "", nil, err
	}
	stored, err := db.Forms(tx, n.field.names.column, owners, plain...)
	if err != nil {
		return "", nil, err
	}
	values := make([]any, len(stored))
	for i, s := range stored {
		values[i] = s
	}
	sql, args = n.field.amongOrUnset(values, n.orUnset, n.negate)
	return sql, args, nil
}

// beyond returns the values beyond a bound of all memories that the caller can see: it opens them.
func (n *names) beyond(tx db.Tx, v kernel.Viewer) ([]string, error) {
	visible, args := v.Visible()
	name := n.field.names
	all, err := db.Column[string](tx, `SELECT DISTINCT `+name.expression+` `+kernel.FromMemory+name.join+` WHERE `+
		name.expression+` IS NOT NULL AND `+visible, args...)
	return slices.DeleteFunc(all, func(value string) bool {
		return !isBeyond([]any{value}, n.operator, n.values[0])
	}), err
}
