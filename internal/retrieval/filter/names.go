package filter

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// sealedNames describes how a store with user keys stores a field with names, keys or tags. Equal values of one owner
// are sealed to equal bytes.
type sealedNames struct {
	column     sealedrows.SealedColumn
	expression string // a value
	join       string // joins the field's table with m, p and c; empty: it is one of them
}

func sealed(f field, column sealedrows.SealedColumn, expression, join string) field {
	f.names = &sealedNames{column, expression, join}
	return f
}

// names is a condition on a field with sealed names.
type names struct {
	field           field
	values          []any
	operator        string // of a bound; empty: equals any of the values
	orUnset, negate bool
}

// opened returns the condition in SQL with the values as they are stored.
func (n *names) opened(tx db.Tx, v kernel.Viewer, owners []int64) (sql SQL, args []any, err error) {
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
		return nil, nil, err
	}
	values := make([]any, len(stored))
	for i, s := range stored {
		values[i] = s
	}
	if len(values) == 1 { // a single value is an argument of its own, not a list
		values[0] = sealedrows.AsStored(stored[0])
	}
	sql, args = n.field.amongOrUnset(values, n.orUnset, n.negate)
	return sql, args, nil
}

// beyond opens the values of all memories that the caller can see, and returns those beyond a bound, in stored form.
func (n *names) beyond(tx db.Tx, v kernel.Viewer) (stored []string, err error) {
	visible, args := v.Visible()
	name := n.field.names
	all, err := db.Column[string](db.Stored(tx), `SELECT DISTINCT `+name.expression+` `+kernel.FromMemory+name.join+
		` WHERE `+name.expression+` IS NOT NULL AND `+visible, args...)
	if err != nil {
		return nil, err
	}
	for _, value := range all {
		plain, err := sealedrows.OpenTexts(tx, []string{value}) // missing if its key was erased
		if err != nil {
			return nil, err
		}
		if len(plain) > 0 && isBeyond([]any{plain[0]}, n.operator, n.values[0]) {
			stored = append(stored, value)
		}
	}
	return stored, nil
}

// Collections returns the names of the collections that a condition asks for; nil for any other condition.
func (p Part) Collections() (asked []string) {
	if p.names == nil || p.names.field.names.column != sealedrows.CollectionName || p.names.operator != "" ||
		p.names.negate {
		return nil
	}
	for _, value := range p.names.values {
		name, _ := value.(string)
		asked = append(asked, name)
	}
	return asked
}
