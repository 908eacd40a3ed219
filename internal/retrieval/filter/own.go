package filter

import (
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// ownField compares a key of the caller's own metadata: text with text, numbers and booleans (as 1 and 0) with each
// other; for a list, one matching element is enough. It finds the memories in the table memory_own, and reads metadata
// that are too long for that table. Damaged metadata have no keys; reading the memory reports the damage.
func ownField(v kernel.Viewer, key string) field {
	own, args := ownPlaces(v)
	// memories selects the memories with a row of the key that fits indexed, and long ones whose metadata fit unindexed.
	memories := func(indexed string, indexedArg []any, unindexed SQL, unindexedArgs ...any) (SQL, []any) {
		return SQL{{ownMeta, `SELECT o.memory_id FROM memory_own o WHERE o.partition_id IN ` + own +
				` AND o.key = ?` + indexed +
				` UNION ALL SELECT o.memory_id FROM memory_own o ` + db.InOrder + ` memory m ON m.id = o.memory_id ` +
				`WHERE o.partition_id IN ` + own + ` AND o.key = '' AND o.value = ` + db.OwnOfLong + ` AND ` + unindexed.String()}},
			slices.Concat(args, []any{key}, indexedArg, args, unindexedArgs)
	}
	asTest := ownTest(key)
	return field{
		value: scalarValue,
		anyOf: func(values []any) (SQL, []any) {
			is, arg := among(values, db.Values)
			test, testArgs := asTest.anyOf(values)
			return memories(` AND o.value`+is, []any{arg}, test, testArgs...)
		},
		compare: func(operator string, bound any) (SQL, []any) {
			indexed := db.OwnIsNumber
			if _, isText := bound.(string); isText {
				indexed = db.OwnIsText
			}
			test, testArgs := asTest.compare(operator, bound)
			return memories(` AND `+indexed+` AND o.value`+operator+` `+db.Scalar, []any{bound}, test, testArgs...)
		},
		isSet: func() (SQL, []any) {
			test, testArgs := asTest.isSet()
			return memories(` AND o.value <> `+db.OwnOfLong, nil, test, testArgs...)
		},
		test: &asTest, own: key,
	}
}

// ownPlaces selects the partitions that the caller can see.
func ownPlaces(v kernel.Viewer) (sql string, args []any) {
	visible, args := v.Visible()
	return `(SELECT p.id FROM partition p JOIN collection c ON c.id = p.collection_id WHERE ` + visible + `)`, args
}

// ownTest compares a key in the metadata of the memory itself.
func ownTest(key string) field {
	return field{
		value: scalarValue,
		anyOf: func(values []any) (SQL, []any) {
			is, arg := among(values, db.Values)
			return Plain(db.Key + `(` + db.KeyIsText + ` OR ` + db.KeyIsNumber + `) AND e.value` + is + `)`), []any{key, arg}
		},
		compare: func(operator string, bound any) (SQL, []any) {
			is := db.KeyIsNumber
			if _, isText := bound.(string); isText {
				is = db.KeyIsText
			}
			return Plain(db.Key + is + ` AND e.value` + operator + ` ` + db.Scalar + `)`), []any{key, bound}
		},
		isSet: func() (SQL, []any) { return Plain(db.KeyIsSet), []any{key} },
	}
}
