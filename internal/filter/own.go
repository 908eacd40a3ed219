package filter

import (
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// ownField compares a key of the caller's own metadata: text with text, numbers and booleans (as 1 and 0) with each
// other; for a list, one matching element is enough. It finds the memories in the table memory_own, and reads the
// metadata of those that are too long for it. Damaged metadata have no keys; reading the memory reports the damage.
func ownField(v kernel.Viewer, key string) field {
	visible, args := v.Visible()
	own := `p.id FROM partition p JOIN collection c ON c.id = p.collection_id WHERE ` + visible + `)`
	// memories selects the memories with a row of the key that fits indexed, and long ones whose metadata fit unindexed.
	memories := func(indexed string, indexedArg []any, unindexed string, unindexedArgs ...any) (string, []any) {
		return InOwn + `WHERE o.partition_id IN (SELECT ` + own +
				` AND o.key = ?` + indexed +
				` UNION ALL SELECT o.memory_id FROM memory_own o ` + db.InOrder + ` memory m ON m.id = o.memory_id ` +
				`WHERE o.partition_id IN (SELECT ` + own + ` AND o.key = '' AND o.value = ` + db.OwnOfLong + ` AND ` + unindexed +
				`)`,
			slices.Concat(args, []any{key}, indexedArg, args, unindexedArgs)
	}
	return field{
		value: scalarValue,
		anyOf: func(values []any) (string, []any) {
			is, arg := among(values, db.Values)
			return memories(` AND o.value`+is, []any{arg}, db.Key+`e.value`+is+`)`, key, arg)
		},
		compare: func(operator string, bound any) (string, []any) {
			indexed, unindexed := db.OwnIsNumber, db.KeyIsNumber
			if _, isText := bound.(string); isText {
				indexed, unindexed = db.OwnIsText, db.KeyIsText
			}
			return memories(` AND `+indexed+` AND o.value`+operator+` ?`, []any{bound},
				db.Key+unindexed+` AND e.value`+operator+` ?)`, key, bound)
		},
		isSet: func() (string, []any) {
			return memories(` AND o.value <> `+db.OwnOfLong, nil, db.KeyIsSet, key)
		},
	}
}
