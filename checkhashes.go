package souvenir

import (
	"fmt"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// DamagedRow is a row of the file that is not what was stored, or is not there any more.
type DamagedRow struct {
	Table string `json:"table"`
	Row   int64  `json:"row"`          // its number in the table
	ID    string `json:"id,omitempty"` // of the memory, file, user ... that it is about, as callers know it; empty: not known any more
	Lost  bool   `json:"lost"`         // it is not there any more
}

// checkHashes compares rows with their hashes.
func (in *inspection) checkHashes() error {
	if since, err := kernel.Setting(in.tx, settingHashed); err != nil {
		return err
	} else if since != 0 {
		in.report.HashedSince = time.UnixMicro(since).UTC()
	}
	for _, t := range hashedTables() {
		err := eachHash(in.tx, t, func(h rowHash) error {
			switch {
			case h.sound():
				in.report.Verified++
			case h.stored == nil:
				in.report.Unverified++
				in.doubt(t, h, t.what+" has no hash, so it cannot be told whether it is what was stored")
			case h.now == nil:
				in.lose(t, h)
			default:
				in.damage(t, h, t.what+" is not what was stored: its hash is another")
			}
			return nil
		})
		if aboutContent(err) {
			in.report.Unverified++ // that many at least
			in.find(Finding{Table: t.Name, Problem: "cannot be read to the end: " + err.Error()})
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// doubt notes a row that only the operator can say is right.
func (in *inspection) doubt(t hashedTable, h rowHash, problem string) {
	id := in.named(t, h)
	in.find(Finding{Table: t.Name, ID: id, Problem: fmt.Sprintf("%s (row %d)", problem, h.id), Repairable: in.accept})
	in.repairs.accept = append(in.repairs.accept, acceptedRow{t, h})
}

func (in *inspection) damage(t hashedTable, h rowHash, problem string) {
	if t.Kind == memoryKind {
		problem += in.intactRevision(h.id)
	}
	in.doubt(t, h, problem)
	in.report.damaged(DamagedRow{Table: t.Name, Row: h.id, ID: in.named(t, h)})
}

// damaged lists a damaged row, as many as are listed.
func (r *CheckReport) damaged(row DamagedRow) {
	if len(r.Damaged) < maxFindings {
		r.Damaged = append(r.Damaged, row)
	}
}

// lose notes a row that is gone.
func (in *inspection) lose(t hashedTable, h rowHash) {
	problem := t.what + " is lost: it was stored, and is not in the file any more"
	if t.Kind == memoryKind {
		problem += in.intactRevision(h.id)
		in.lostMemories[h.id] = true
	}
	in.doubt(t, h, problem)
	in.report.damaged(DamagedRow{Table: t.Name, Row: h.id, ID: in.named(t, h), Lost: true})
}

// named finds the id by which callers know a row. Of a memory that is lost the index of the ids may still know it.
func (in *inspection) named(t hashedTable, h rowHash) string {
	names, err := db.Column[string](in.tx, `SELECT coalesce((`+t.named+`), '')`, h.id)
	if err == nil && len(names) > 0 && names[0] != "" {
		return names[0]
	}
	if t.Kind == memoryKind || t.Name == "memory_tag" || t.Name == "memory_link" {
		names, err = db.Column[string](in.tx, `SELECT uid FROM memory `+db.ByUID+` WHERE +id = ?`, h.id)
		if err == nil && len(names) == 1 {
			return names[0]
		}
	}
	return ""
}

// intactRevision says which former state of a damaged memory is sound.
func (in *inspection) intactRevision(memory int64) string {
	for _, t := range hashedTables() {
		if t.Kind != revisionKind {
			continue
		}
		columns, err := hashedColumns(in.tx, t)
		if err != nil {
			return ""
		}
		numbers, err := db.Column[int64](in.tx, fmt.Sprintf(`SELECT t.revision FROM memory_revision t JOIN row_hash h ON h.kind = %d AND h.id = t.id
			WHERE t.memory_id = ? AND h.hash = %s ORDER BY t.revision DESC LIMIT 1`, t.Kind, t.Expression("t", columns)), memory)
		if err == nil && len(numbers) == 1 {
			return fmt.Sprintf("; its revision %d is sound", numbers[0])
		}
	}
	return ""
}

// acceptedRow is a row that is to be taken for what was stored.
type acceptedRow struct {
	table hashedTable
	rowHash
}

// takeRows takes rows as they were when they were looked at. What has changed since is left.
func takeRows(tx db.Tx, rows []acceptedRow) error {
	for _, r := range rows {
		columns, err := hashedColumns(tx, r.table)
		if err != nil {
			return err
		}
		if r.table.Set || r.now == nil {
			if r.now == nil {
				_, err = tx.Exec(fmt.Sprintf(`DELETE FROM row_hash WHERE kind = ? AND id = ? AND NOT EXISTS (SELECT 1 FROM "%s" WHERE "%s" = ?2)`, r.table.Name, r.table.Key),
					r.table.Kind, r.id)
			} else {
				err = writeHash(tx, r.table, r.id, r.now)
			}
		} else {
			_, err = tx.Exec(fmt.Sprintf(`INSERT INTO row_hash (kind, id, hash) SELECT ?, t."%s", %s FROM "%s" t WHERE t."%[1]s" = ?
				ON CONFLICT (kind, id) DO UPDATE SET hash = excluded.hash`, r.table.Key, r.table.Expression("t", columns), r.table.Name), r.table.Kind, r.id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
