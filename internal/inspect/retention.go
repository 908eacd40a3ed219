package inspect

import (
	"fmt"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// checkRetention checks the rules of collections and projects: a wrong one would remove memories too early.
func (in *inspection) checkRetention() error {
	return in.tx.Each(func(row db.Rows) error {
		var table, id string
		var after, deletes int64
		if err := row.Scan(&table, &id, &after, &deletes); err != nil {
			return err
		}
		in.find(Finding{Table: table, ID: id,
			Problem: fmt.Sprintf("the retention rule of %s is not valid: %d microseconds, deletes %d",
				fault.Show(id), after, deletes)})
		return nil
	}, `SELECT 'collection', name, coalesce(retention, 0), coalesce(retention_deletes, 0) FROM collection
		WHERE retention NOT BETWEEN ?1 AND ?2 OR retention_deletes <> 1 OR retention_deletes = 1 AND retention IS NULL
		UNION ALL SELECT 'project', uid, coalesce(retention, 0), coalesce(retention_deletes, 0) FROM project
		WHERE retention NOT BETWEEN ?1 AND ?2 OR retention_deletes <> 1 OR retention_deletes = 1 AND retention IS NULL`,
		valid.MinRetention.Microseconds(), valid.MaxRetention.Microseconds())
}
