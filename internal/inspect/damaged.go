package inspect

import (
	"fmt"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// checkHashes compares rows with their hashes.
func (in *inspection) checkHashes() error {
	if since, err := kernel.Setting(in.tx, kernel.SettingHashed); err != nil {
		return err
	} else if since != 0 {
		in.report.HashedSince = time.UnixMicro(since).UTC()
	}
	for _, t := range kernel.HashedTables() {
		err := kernel.EachHash(in.tx, t, func(h kernel.RowHash) error {
			switch {
			case h.Sound():
				in.report.Verified++
			case h.Stored == nil:
				in.report.Unverified++
				in.doubt(t, h, t.What+" has no hash, so it cannot be verified")
			case h.Now == nil:
				in.lose(t, h)
			default:
				in.damage(t, h, t.What+" differs from what was stored: its hash does not match")
			}
			return nil
		})
		if in.s.aboutContent(err) {
			in.report.Unverified++ // at least that many
			in.find(Finding{Table: t.Name, Problem: "cannot be read completely: " + err.Error()})
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// doubt records a row that only the operator can confirm.
func (in *inspection) doubt(t kernel.HashedTable, h kernel.RowHash, problem string) {
	id := in.named(t, h)
	in.find(Finding{Table: t.Name, ID: id, Problem: fmt.Sprintf("%s (row %d)", problem, h.ID), Repairable: in.accept})
	in.repairs.accept = append(in.repairs.accept, acceptedRow{t, h})
}

func (in *inspection) damage(t kernel.HashedTable, h kernel.RowHash, problem string) {
	if t.Kind == kernel.MemoryKind {
		problem += in.intactRevision(h.ID)
	}
	in.doubt(t, h, problem)
	in.report.damaged(DamagedRow{Table: t.Name, Row: h.ID, ID: in.named(t, h)})
}

// damaged adds a damaged row to the list, up to its limit.
func (r *Report) damaged(row DamagedRow) {
	if len(r.Damaged) < MaxFindings {
		r.Damaged = append(r.Damaged, row)
	}
}

// lose records a missing row.
func (in *inspection) lose(t kernel.HashedTable, h kernel.RowHash) {
	problem := t.What + " is lost: it was stored, and is no longer in the file"
	if t.Kind == kernel.MemoryKind {
		problem += in.intactRevision(h.ID)
		in.lostMemories[h.ID] = true
	}
	in.doubt(t, h, problem)
	in.report.damaged(DamagedRow{Table: t.Name, Row: h.ID, ID: in.named(t, h), Lost: true})
}

// named finds the public id of a row. The index of ids may still have the id of a lost memory.
func (in *inspection) named(t kernel.HashedTable, h kernel.RowHash) string {
	names, err := db.Column[string](in.tx, `SELECT coalesce((`+t.Named+`), '')`, h.ID)
	if err == nil && len(names) > 0 && names[0] != "" {
		return names[0]
	}
	if t.Kind == kernel.MemoryKind || t.Name == "memory_tag" || t.Name == "memory_link" {
		names, err = db.Column[string](in.tx, `SELECT uid FROM memory `+db.ByUID+` WHERE `+db.NoIndex+`id = ?`, h.ID)
		if err == nil && len(names) == 1 {
			return names[0]
		}
	}
	return ""
}

// intactRevision returns which past version of a damaged memory is intact.
func (in *inspection) intactRevision(memory int64) string {
	for _, t := range kernel.HashedTables() {
		if t.Kind != kernel.RevisionKind {
			continue
		}
		columns, err := kernel.HashedColumns(in.tx, t)
		if err != nil || len(columns) == 0 {
			return ""
		}
		numbers, err := db.Column[int64](in.tx,
			fmt.Sprintf(`SELECT t.revision FROM memory_revision t JOIN row_hash h ON h.kind = %d AND h.id = t.id
			WHERE t.memory_id = ? AND h.hash = %s ORDER BY t.revision DESC LIMIT 1`, t.Kind, t.Expression("t", columns)), memory)
		if err == nil && len(numbers) == 1 {
			return fmt.Sprintf("; its revision %d is intact", numbers[0])
		}
	}
	return ""
}

// acceptedRow is a row to accept as it is.
type acceptedRow struct {
	table kernel.HashedTable
	kernel.RowHash
}

// takeRows accepts rows as they were when checked. Rows that have changed since are left alone.
func takeRows(tx db.Tx, rows []acceptedRow) error {
	for _, r := range rows {
		columns, err := kernel.HashedColumns(tx, r.table)
		if err != nil {
			return err
		}
		if r.table.Set || r.Now == nil {
			if r.Now == nil {
				_, err = tx.Exec(fmt.Sprintf(
					`DELETE FROM row_hash WHERE kind = ? AND id = ? AND NOT EXISTS (SELECT 1 FROM "%s" WHERE "%s" = ?2)`, r.table.Name,
					r.table.Key),
					r.table.Kind, r.ID)
			} else {
				err = kernel.WriteHash(tx, r.table, r.ID, r.Now)
			}
		} else {
			_, err = tx.Exec(fmt.Sprintf(
				`INSERT INTO row_hash (kind, id, hash) SELECT ?, t."%s", %s FROM "%s" t WHERE t."%[1]s" = ?
				ON CONFLICT (kind, id) DO UPDATE SET hash = excluded.hash`, r.table.Key, r.table.Expression("t", columns),
				r.table.Name), r.table.Kind, r.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
