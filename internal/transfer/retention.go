package transfer

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/trash"
)

// retention selects the rule of a collection or a project for how long memories stay.
func retention(of string) string {
	return db.Quotient(of+`.retention`, `1000000`) + `, CASE WHEN ` + of + `.retention IS NULL THEN NULL WHEN ` + of +
		`.retention_deletes = 1 THEN 'delete' ELSE 'trash' END`
}

// retentionRefs returns a rule as it is at rest.
func retentionRefs(seconds, action any) ([]any, error) {
	after, is := seconds.(int64)
	if !is {
		return []any{nil, nil}, nil
	}
	const least, most = 24 * 3600, 36_500 * 24 * 3600
	if after < least || after > most {
		return nil, fault.Invalid("retention_seconds", "retention_seconds is %d; expected %d to %d seconds", after, least,
			most)
	}
	micros, deletes := trash.Retention{After: after * 1_000_000, Deletes: action == "delete"}.Columns()
	return []any{micros, deletes}, nil
}
