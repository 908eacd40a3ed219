package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/files/filetext"
	"github.com/souvenir-ai/souvenir/internal/files/objects"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/records/audit"
	"github.com/souvenir-ai/souvenir/internal/sealing/keyring"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/text"
)

// repairs are the repairs for the findings of an inspection. Each is correct even if the data has changed since, so
// none needs to check that the damage still exists.
type repairs struct {
	indexes  bool      // rebuild the file's indexes
	fullText bool      // rebuild all of full text
	own      bool      // rebuild the index of own metadata
	userKeys bool      // fold the ids of users again
	orphans  []orphans // rows to delete
	unlink   []orphans // references to remove
	apart    bool      // remove sharing between users of different namespaces
	chunks   bool      // delete chunks without a file
	files    bool      // read files without their texts again, and delete texts without a file
	erased   []int64   // files to delete, whose keys are erased
	lost     lostRows  // other rows to delete, whose keys are erased
	objects  bool      // mark the objects of chunks as needed, and all others as to be deleted
	places   []int64   // partitions to give to the owners of their projects
	counts   []int64   // partitions to count again
	memories []int64   // memories whose passages must be rebuilt
	vectors  []int64   // passages whose vectors must be rebuilt
	texts    []int64   // rows of full text to rewrite or delete
	segments []int64   // partitions whose stored search index must be rebuilt
	turns    []int64   // memories whose places in conversations must be recorded again

	accept []acceptedRow   // rows to accept as they are; only if the caller asks for it
	audit  []audit.Problem // likewise, places of the audit log
}

// repairBatch is the number of rows that one transaction repairs, which bounds the time that other writers wait.
const repairBatch = 64

// repair makes the repairs. It skips steps that fail because of damage; the next inspection finds them again.
func (s Store) repair(ctx context.Context, r *repairs, progress progress) error {
	steps := s.repairSteps(ctx, r)
	for i, step := range steps {
		progress("repair", i, len(steps))
		if err := step(); s.aboutContent(err) {
			s.Log.Warn("something could not be repaired", "error", err)
		} else if err != nil {
			return err
		}
	}
	progress("repair", len(steps), len(steps))
	s.Wake()
	return nil
}

// repairSteps orders the repairs so that each finds the data that it needs intact.
func (s Store) repairSteps(ctx context.Context, r *repairs) []func() error {
	p := &repairPlan{store: s, ctx: ctx}
	if r.indexes {
		p.steps = append(p.steps, func() error { return s.DB.Upkeep().RebuildIndexes(ctx) })
	}
	if r.fullText {
		p.write(func(tx db.Tx) error { return tx.Words().Clear() })
		p.steps = append(p.steps, func() error { return s.rebuildFullText(ctx) })
	}
	if r.own {
		p.write(kernel.RemakeOwnIndex)
	}
	if r.userKeys {
		p.write(kernel.FillUserKeys)
	}
	for _, o := range r.unlink {
		p.one(fmt.Sprintf(`UPDATE "%s" SET "%s" = NULL WHERE %s`, o.table, o.column, o.condition()))
	}
	for _, o := range r.orphans {
		p.one(fmt.Sprintf(`DELETE FROM "%s" WHERE %s`, o.table, o.condition()))
	}
	if r.apart {
		p.one(`DELETE FROM project_member WHERE ` + memberApart)
		p.one(`DELETE FROM project_invitation WHERE ` + recipientApart)
	}
	if r.chunks {
		p.one(`DELETE FROM file_chunk WHERE ` + kernel.FileOf(`id`) + ` NOT IN (SELECT id FROM file)`)
	}
	p.many(r.erased, func(tx db.Tx, batch []int64) error {
		_, err := tx.Exec(`DELETE FROM trash WHERE kind = 'file' AND 'trash/' || id IN (SELECT uid FROM file
			WHERE state = 'trashed' AND id IN `+db.Integers+`)`, db.List(batch))
		if err == nil {
			_, err = tx.Exec(`UPDATE file SET state = 'leaving', memory_id = NULL, project_id = NULL WHERE id IN `+db.Integers,
				db.List(batch))
		}
		return err
	})
	r.lost.remove(p.many)
	if r.objects {
		p.write(objects.Restore)
		p.one(`UPDATE file_object SET state = 'leaving', due_at = 0 WHERE ` + unheld)
	}
	p.many(r.places, s.giveToOwners)
	if r.files {
		p.write(filetext.Repair)
	}
	p.many(r.counts, recount)
	p.many(r.vectors, func(tx db.Tx, batch []int64) error { // before the steps that read the remaining vectors
		_, err := tx.Exec(`UPDATE passage SET vector = NULL WHERE id IN `+db.Integers, db.List(batch))
		return err
	})
	p.many(r.memories, s.remakePassages)
	p.many(r.texts, rewriteFullText)
	p.many(r.turns, func(tx db.Tx, batch []int64) error { return kernel.KeepTurns(tx, batch...) })
	p.many(r.segments, func(tx db.Tx, batch []int64) error {
		_, err := tx.Exec(`DELETE FROM segmented WHERE partition_id IN `+db.Integers, db.List(batch))
		return err
	})
	for batch := range slices.Chunk(r.accept, repairBatch) {
		p.write(func(tx db.Tx) error { return takeRows(tx, batch) })
	}
	if len(r.audit) > 0 {
		p.steps = append(p.steps, func() error { return s.acceptAudit(ctx, r.audit) })
	}
	return p.steps
}

// repairPlan collects the steps of a repair.
type repairPlan struct {
	store Store
	ctx   context.Context
	steps []func() error
}

// write adds a step that runs fn in a transaction.
func (p *repairPlan) write(fn func(db.Tx) error) {
	p.steps = append(p.steps, func() error { return p.store.DB.Write(p.ctx, fn) })
}

// one adds a step for a statement.
func (p *repairPlan) one(statement string, args ...any) {
	p.write(func(tx db.Tx) error {
		_, err := tx.Exec(statement, args...)
		return err
	})
}

// many adds a step for each batch of rows. A row that cannot be repaired does not hold up the others.
func (p *repairPlan) many(rows []int64, fn func(tx db.Tx, batch []int64) error) {
	s := p.store
	for batch := range slices.Chunk(distinctRows(rows), repairBatch) {
		p.steps = append(p.steps, func() error {
			err := s.DB.Write(p.ctx, func(tx db.Tx) error { return fn(tx, batch) })
			if !s.aboutContent(err) {
				return err
			}
			for i := range batch {
				failed := s.DB.Write(p.ctx, func(tx db.Tx) error { return fn(tx, batch[i:i+1]) })
				if failed != nil && !s.aboutContent(failed) {
					return failed
				}
			}
			return err
		})
	}
}

func distinctRows(rows []int64) []int64 {
	return slices.Compact(slices.Sorted(slices.Values(rows)))
}

// partitionBytes counts the bytes of the memories in partition ?1.
const partitionBytes = `(SELECT coalesce(sum(octet_length(content) + octet_length(metadata)), 0) FROM memory
	WHERE partition_id = ?1)
	+ (SELECT coalesce(sum(octet_length(content) + octet_length(attributes)), 0) FROM memory_revision
	WHERE partition_id = ?1)`

// giveToOwners gives partitions to the owners of their projects, as collections of the same names, with a number
// appended if the owner has one with other vectors.
func (s Store) giveToOwners(tx db.Tx, partitions []int64) error {
	for _, p := range partitions {
		var owner, profile int64
		var name string
		err := tx.QueryRow(`SELECT j.owner_id, coalesce(c.own_profile, 0), c.name FROM partition p
			JOIN collection c ON c.id = p.collection_id
			JOIN project j ON j.id = p.project_id WHERE p.id = ?`, p).Scan(&owner, &profile, &name)
		if err != nil {
			return err
		}
		row, ownProfile, found, err := kernel.OwnCollection(tx, owner, name)
		if err != nil {
			return err
		}
		if found && ownProfile != profile {
			name, found = fmt.Sprintf("%.100s (%d)", name, p), false
		}
		if !found {
			sealed, err := sealedrows.SealText(tx, owner, sealedrows.CollectionName, name)
			if err != nil {
				return err
			}
			row, err = db.Insert(tx, `INSERT INTO collection (owner_id, name, description, own_profile, created_at, updated_at)
				SELECT ?, ?, '', own_profile, created_at, updated_at FROM collection WHERE id = (SELECT collection_id
				FROM partition WHERE id = ?) RETURNING id`, owner, sealed, p)
			if err != nil {
				return err
			}
		}
		if _, err := tx.Exec(`UPDATE partition SET collection_id = ? WHERE id = ?`, row, p); err != nil {
			return err
		}
		if err := errors.Join(kernel.Reseal(tx, p, owner), s.sealAgain(tx, owner, p)); err != nil {
			return err
		}
	}
	return nil
}

// sealAgain seals the vectors and the words of a partition under the key of its new owner. Segments are rebuilt.
func (s Store) sealAgain(tx db.Tx, owner, partition int64) error {
	if !sealedrows.Seals(tx) {
		return nil
	}
	if _, err := tx.Exec(`DELETE FROM segmented WHERE partition_id = ?`, partition); err != nil {
		return err
	}
	in := kernel.PassageRange(partition)
	passages, err := db.Column[int64](tx, `SELECT id FROM passage WHERE id BETWEEN ? AND ? ORDER BY id`, in.First, in.Last)
	if err != nil {
		return err
	}
	for batch := range slices.Chunk(passages, kernel.BatchRows) {
		if err := s.sealVectors(tx, owner, batch); err != nil {
			return err
		}
		if err := rewriteFullText(tx, batch); err != nil {
			return err
		}
	}
	return nil
}

// sealVectors seals the vectors of some passages again. Vectors that cannot be opened stay as they are.
func (s Store) sealVectors(tx db.Tx, owner int64, passages []int64) error {
	type sealed struct {
		id     int64
		vector []byte
	}
	var all []sealed
	err := db.Stored(tx).Each(func(row db.Rows) error {
		var p sealed
		err := row.Scan(&p.id, &p.vector)
		all = append(all, p)
		return err
	}, `SELECT id, vector FROM passage WHERE vector IS NOT NULL AND id IN `+db.Integers, db.List(passages))
	for _, p := range all {
		if err != nil {
			return err
		}
		value, is := sealedrows.SealedBytes(sealedrows.PassageVector, p.vector)
		if !is {
			continue
		}
		plain, failed := s.Keys.Open(tx.Context(), sealedrows.PassageVector.Purpose(), value)
		if keyring.IsShut(failed) {
			continue
		}
		if failed != nil {
			return failed
		}
		var stored any
		if stored, err = sealedrows.SealBytes(tx, owner, sealedrows.PassageVector, plain); err == nil {
			_, err = tx.Exec(`UPDATE passage SET vector = ? WHERE id = ?`, stored, p.id)
		}
	}
	return err
}

// recount corrects the counts of partitions.
func recount(tx db.Tx, partitions []int64) error {
	for _, p := range partitions {
		in := kernel.PassageRange(p)
		_, err := tx.Exec(`UPDATE partition SET memories = (SELECT count(*) FROM memory WHERE partition_id = ?1),
				passages = (SELECT count(*) FROM passage WHERE id BETWEEN ?2 AND ?3),
				revisions = (SELECT count(*) FROM memory_revision WHERE partition_id = ?1), bytes = `+partitionBytes+`,
				next_passage = (SELECT max(n)
				FROM (SELECT CASE WHEN partition.next_passage > 4294967296 THEN 0 ELSE partition.next_passage END AS n
					UNION ALL SELECT coalesce(max(id) & 4294967295, -1) + 1 FROM passage WHERE id BETWEEN ?2 AND ?3) following)
			WHERE id = ?1`, p, in.First, in.Last)
		if err != nil {
			return err
		}
	}
	return nil
}

// remakePassages rebuilds the passages of memories from their contents. Their vectors are made later; the caller's own
// vectors are kept if they are intact.
func (s Store) remakePassages(tx db.Tx, memories []int64) error {
	w, err := kernel.NewRowWriter(tx, kernel.Viewer{}, s.Profile, s.Model)
	if err != nil {
		return err
	}
	found, err := kernel.ReadPlain(tx, `m.id IN `+db.Integers, db.List(memories))
	if err != nil {
		return err
	}
	if err := kernel.KeepTurns(tx, memories...); err != nil {
		return err
	}
	for _, m := range found {
		if m.OwnVectors {
			err = w.RemakeOwn(m, s.MaxInput)
		} else {
			err = w.ReplacePassages(m.Row, m.Partition, kernel.Split(m.Content, s.MaxInput), nil, m.Tags)
		}
		if err != nil {
			return err
		}
	}
	return w.Flush()
}

// rebuildFullText rebuilds full text, in steps.
func (s Store) rebuildFullText(ctx context.Context) error {
	for after := int64(-1); ; {
		var batch []int64
		err := s.DB.Write(ctx, func(tx db.Tx) (err error) {
			if batch, err = db.Column[int64](tx, `SELECT id FROM passage WHERE id > ? ORDER BY id LIMIT ?`, after,
				kernel.BatchRows); err != nil {
				return err
			}
			if err := kernel.Ascending(after, batch); err != nil {
				return err
			}
			return rewriteFullText(tx, batch)
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		after = batch[len(batch)-1]
	}
}

// rewriteFullText rewrites the full-text rows of some passages, and deletes the rows of passages that do not exist.
func rewriteFullText(tx db.Tx, passages []int64) error {
	if err := tx.Words().Drop(passages...); err != nil {
		return err
	}
	type row struct {
		id            int64
		content, tags string
	}
	var rows []row
	content, _ := sealedrows.Piece(tx, `m.content`, `p.start + 1`, `p.length`)
	err := tx.Each(func(r db.Rows) error {
		var p row
		var start, length int
		var piece []byte
		err := r.Scan(&p.id, &start, &length, &piece, &p.tags)
		p.content = string(sealedrows.Cut(tx, piece, start, length))
		rows = append(rows, p)
		return err
	}, `SELECT p.id, p.start, p.length, `+content+`,
			CASE WHEN p.id = (SELECT min(id) FROM passage WHERE memory_id = m.id) THEN coalesce((SELECT string_agg(tag, `+
		db.Newline+` ORDER BY position) FROM memory_tag WHERE memory_id = m.id), '') ELSE '' END
		FROM passage p JOIN memory m ON m.id = p.memory_id WHERE p.id IN `+db.Integers, db.List(passages))
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := tx.Words().Put(r.id, text.Indexed(r.content), text.Indexed(r.tags), false); err != nil {
			return err
		}
	}
	return nil
}
