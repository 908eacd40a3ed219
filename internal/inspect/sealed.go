package inspect

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
)

// lostRows are rows whose texts were erased with their owners' keys.
type lostRows struct{ memories, revisions, entries []int64 }

// lost reports a row whose text was erased with its owner's key, in stores where that can happen.
func (in *inspection) lost(rows *[]int64, row int64, table, id, what string) bool {
	if !sealedrows.Seals(in.tx) {
		return false
	}
	in.find(Finding{Table: table, ID: id, Repairable: true, Problem: what + " was erased with its owner's key: the " +
		"store comes from an older backup; a repair removes it"})
	*rows = append(*rows, row)
	return true
}

// remove adds the repairs, which delete the rows.
func (l lostRows) remove(many func(rows []int64, fn func(tx db.Tx, batch []int64) error)) {
	for _, table := range []struct {
		statement string
		rows      []int64
	}{
		{`DELETE FROM memory WHERE id IN `, l.memories}, {`DELETE FROM memory_revision WHERE id IN `, l.revisions},
		{`DELETE FROM trash WHERE id IN `, l.entries},
	} {
		many(table.rows, func(tx db.Tx, batch []int64) error {
			_, err := tx.Exec(table.statement+db.Integers, db.List(batch))
			return err
		})
	}
}
