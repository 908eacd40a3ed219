package transfer

import (
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// sealedField is a field that is stored as a value of a sealed column. Keys with such a field are looked up in sealed
// form.
type sealedField struct {
	field  int
	column sealedrows.SealedColumn
	key    string // the column of the selection that the key is compared with; empty: not part of the key
}

// keyOf returns the condition for the row with the key of a line, and its arguments.
func (r *Record) keyOf(t *importTx, values []any) (keyed string, key []any, err error) {
	keyed, key = r.keyed, slices.Clone(values[:r.Key])
	for _, s := range r.sealed {
		text, is := values[s.field].(string)
		if s.key == "" || !is || !sealedrows.Seals(t.tx) {
			continue
		}
		owner, err := db.Column[int64](t.tx, `SELECT id FROM users WHERE namespace = ? AND uid = ?`, t.namespace, values[0])
		if err != nil {
			return "", nil, err
		}
		condition, stored, err := sealedrows.IsAny(t.tx, s.column, owner, s.key, text)
		if err != nil {
			return "", nil, err
		}
		keyed = strings.Replace(keyed, s.key+` = ?`, condition, 1)
		key[s.field] = stored
	}
	return keyed, key, nil
}

// seal seals the values of a row of an owner.
func (r *Record) seal(tx db.Tx, values, refs []any) (err error) {
	for _, s := range r.sealed {
		text, is := values[s.field].(string)
		owner, known := refs[r.of].(int64)
		if is && known && err == nil {
			values[s.field], err = sealedrows.SealText(tx, owner, s.column, text)
		}
	}
	return err
}
