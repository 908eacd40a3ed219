package trash

import (
	"context"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// Retention is the rule of a collection or a project for how long its memories stay.
type Retention struct {
	After   int64 `json:"after"`             // microseconds since a memory's last change; 0: there is no rule
	Deletes bool  `json:"deletes,omitempty"` // deletes permanently instead of to the trash
}

// ByRetention is the Mover.Through of deletions by a rule.
const ByRetention = "retention"

// Columns are the values of a rule at rest.
func (r Retention) Columns() (after, deletes any) {
	if r.After == 0 {
		return nil, nil
	}
	if r.Deletes {
		deletes = int64(1)
	}
	return r.After, deletes
}

// earlier returns the rule with the shorter time. Of two with the same time, it returns the one that can be undone.
func (r Retention) earlier(other Retention) Retention {
	switch {
	case r.After == 0:
		return other
	case other.After == 0 || r.After < other.After:
		return r
	case r.After == other.After:
		return Retention{r.After, r.Deletes && other.Deletes}
	}
	return other
}

const (
	// goes is the condition for the memories m that a rule removes. Rules, dos and don'ts, the identity and main memories
	// of projects stay, since agents follow them as long as they exist.
	goes = ` AND m.rule_type IS NULL AND coalesce(m.classification, '') NOT IN ('do', 'dont')
		AND lower(coalesce(m.event_type, '')) NOT IN ('identity', 'project-main')`

	// ruled are the partitions p with rules of their collection c or project j.
	ruled = ` FROM partition p JOIN collection c ON c.id = p.collection_id LEFT JOIN project j ON j.id = p.project_id
		WHERE c.name <> '' AND (c.retention IS NOT NULL OR j.retention IS NOT NULL)`

	// due selects the ruled partitions with due memories; its argument is the time. The rules are few and have indexes.
	due = `SELECT p.id` + ruled + ` AND p.id IN (SELECT id FROM partition WHERE collection_id IN
			(SELECT id FROM collection WHERE retention IS NOT NULL)
			UNION SELECT id FROM partition WHERE project_id IN (SELECT id FROM project WHERE retention IS NOT NULL))
		AND EXISTS (SELECT 1 FROM memory m WHERE m.partition_id = p.id AND m.updated_at <= ? -
			CASE WHEN j.retention < c.retention THEN j.retention ELSE coalesce(c.retention, j.retention) END` + goes + `)
		ORDER BY p.id`
)

// kept reports whether a rule never removes a memory, like the condition goes.
func kept(m kernel.TrashedMemory) bool {
	event := lowerASCII(m.EventType)
	return m.RuleType != "" || m.Classification == "do" || m.Classification == "dont" || event == "identity" ||
		event == "project-main"
}

// lowerASCII folds a text as lower does in SQL.
func lowerASCII(text string) string {
	b := []byte(text)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// ruleOf reads the rule for a partition, the zero value if there is none.
func ruleOf(tx db.Tx, partition int64) (rule Retention, err error) {
	err = tx.Each(func(row db.Rows) error {
		var collection, project Retention
		err := row.Scan(&collection.After, &collection.Deletes, &project.After, &project.Deletes)
		rule = collection.earlier(project)
		return err
	}, `SELECT coalesce(c.retention, 0), coalesce(c.retention_deletes, 0), coalesce(j.retention, 0),
		coalesce(j.retention_deletes, 0)`+ruled+` AND p.id = ?`, partition)
	return rule, err
}

// Retained counts the removals by rules.
type Retained struct {
	Trashed int // memories moved to the trash
	Deleted int // memories deleted permanently
}

// Keeper removes the memories that the rules of their collection or project no longer keep.
type Keeper struct {
	Store db.DB
	NewID func() string
	Keep  func(tx db.Tx) int64 // how long the trash keeps entries, in microseconds; below 0: it is off
}

// Remove removes memories that are due by a time, in portions. Each portion is a transaction that reads the rules
// again, so that changes of rules take effect at once.
func (k *Keeper) Remove(ctx context.Context, now int64) (r Retained, err error) {
	var partitions []int64
	err = k.Store.Read(ctx, func(tx db.Tx) (err error) {
		partitions, err = db.Column[int64](tx, due, now)
		return err
	})
	for _, partition := range partitions {
		if err == nil {
			err = k.removeFrom(ctx, partition, now, &r)
		}
	}
	return r, err
}

// removeFrom removes the due memories of a partition.
func (k *Keeper) removeFrom(ctx context.Context, partition, now int64, r *Retained) error {
	return InPortions(func(p Portion) (done bool, err error) {
		var some Retained
		err = k.Store.Write(db.Freeing(ctx), func(tx db.Tx) (err error) {
			some, done, err = k.portion(tx, partition, now, p)
			return err
		})
		if err == nil {
			r.Trashed, r.Deleted = r.Trashed+some.Trashed, r.Deleted+some.Deleted
		}
		return done, err
	})
}

// portion removes one portion of the due memories of a partition, and reports whether that was all.
func (k *Keeper) portion(tx db.Tx, partition, now int64, p Portion) (r Retained, done bool, err error) {
	rule, err := ruleOf(tx, partition)
	if err != nil || rule.After == 0 {
		return r, true, err
	}
	rows, err := db.Column[int64](tx, `SELECT m.id FROM memory m WHERE m.partition_id = ? AND m.updated_at <= ?`+goes+
		` ORDER BY m.updated_at LIMIT ?`, partition, now-rule.After, p.Rows)
	if err != nil {
		return r, false, err
	}
	done = len(rows) < p.Rows
	keep := k.Keep(tx)
	if rule.Deletes || keep < 0 {
		return Retained{Deleted: len(rows)}, done, (&Mover{Tx: tx}).EraseMemories(rows...)
	}
	mover := (&Mover{Tx: tx, Now: now, Until: now + keep, Through: ByRetention, NewID: k.NewID}).Bounded(p)
	at, err := mover.Place(partition)
	if err != nil {
		return r, false, err
	}
	mover.Viewer.User = at.OwnerRow
	for _, row := range rows {
		if mover.left <= 0 {
			return r, false, nil
		}
		m := Memory{Row: row, Partition: partition}
		if err := tx.QueryRow(`SELECT uid, content FROM memory WHERE id = ?`, row).Scan(&m.ID, &m.Content); err != nil {
			return r, false, err
		}
		if err := mover.Memory(m); err != nil {
			return r, false, err
		}
		r.Trashed++
	}
	return r, done, nil
}

// CountDue counts the memories that a rule would remove: those unchanged since a time, in the partitions p for which a
// condition holds.
func CountDue(tx db.Tx, before int64, condition string, arg int64) (n int, err error) {
	err = tx.QueryRow(`SELECT count(*) FROM partition p JOIN collection c ON c.id = p.collection_id AND c.name <> ''
		JOIN memory m ON m.partition_id = p.id WHERE `+condition+` AND m.updated_at <= ?`+goes, arg, before).Scan(&n)
	return n, err
}

// young sets the last change of a memory that is restored to a place with a rule to the present, since the rule would
// otherwise remove it again at once.
func (r *Restorer) young(m *kernel.TrashedMemory, partition int64) error {
	if kept(*m) {
		return nil
	}
	has, known := r.ruled[partition]
	if !known {
		rule, err := ruleOf(r.Tx, partition)
		if err != nil {
			return err
		}
		if r.ruled == nil {
			r.ruled = map[int64]bool{}
		}
		has = rule.After != 0
		r.ruled[partition] = has
	}
	if has {
		m.Updated = max(m.Updated, r.Now)
	}
	return nil
}

// ReadRetention returns the rule of a collection or a project (table).
func ReadRetention(tx db.Tx, table string, row int64) (r Retention, err error) {
	err = tx.QueryRow(`SELECT coalesce(retention, 0), coalesce(retention_deletes, 0) FROM `+table+` WHERE id = ?`, row).
		Scan(&r.After, &r.Deletes)
	return r, err
}

// SetRetention gives a collection or a project (table) a rule.
func SetRetention(tx db.Tx, table string, row int64, r Retention) error {
	after, deletes := r.Columns()
	_, err := tx.Exec(`UPDATE `+table+` SET retention = ?, retention_deletes = ? WHERE id = ?`, after, deletes, row)
	return err
}
