package inspect

import "github.com/souvenir-ai/souvenir/internal/db"

// lostRows are rows whose texts were erased with their owners' keys.
type lostRows struct{ memories, revisions, entries []int64 }

// lost reports a row whose text was erased with its owner's key, if there can be such in the store.
func (in *inspection) lost(rows *[]int64, row int64, table, id, what string) bool {
	if !db.Seals(in.tx) {
		return false
	}
	in.find(Finding{Table: table, ID: id, Repairable: true, Problem: what + " was erased with its owner's key: the " +
		"store comes from an older backup; a repair removes it"})
	*rows = append(*rows, row)
	return true
}
