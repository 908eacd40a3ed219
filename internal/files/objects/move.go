package objects

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
)

// Place is where the content of files is.
type Place string

// The values of [Place].
const (
	InDatabase Place = "database"
	InObjects  Place = "objects"
)

// Moved is the result of [Objects.Move]; souvenir.FileMove documents it.
type Moved struct {
	Chunks  int
	Bytes   int64
	Damaged int
}

// Move moves the content of all visible or restorable files to a place, in short transactions.
func (o *Objects) Move(ctx context.Context, to Place, progress func(stage string, done, total int)) (Moved, error) {
	m := mover{Objects: o, to: to}
	total := 0
	if err := o.DB.Read(ctx, func(tx db.Tx) error {
		return tx.QueryRow(`SELECT count(*) FROM file_chunk k WHERE ` + m.elsewhere()).Scan(&total)
	}); err != nil {
		return Moved{}, err
	}
	for more := true; more; {
		var err error
		if more, err = m.some(ctx); err != nil {
			return m.done, err
		}
		if progress != nil {
			progress("move", min(m.done.Chunks+m.done.Damaged, total), total)
		}
	}
	return m.done, nil
}

// movedAtOnce is the number of chunks that one transaction moves.
const movedAtOnce = 16

// mover moves the content of files.
type mover struct {
	*Objects
	to    Place
	after int64 // the last chunk read
	done  Moved
}

// elsewhere is the condition that a chunk is not at the target yet.
func (m *mover) elsewhere() string {
	place := `k.object IS NOT NULL`
	if m.to == InObjects {
		place = `k.object IS NULL`
	}
	return place + ` AND EXISTS (SELECT 1 FROM file f WHERE f.id = ` + kernel.FileOf(`k.id`) +
		` AND f.state IN ('stored', 'trashed'))`
}

// some moves the next chunks; more is false if there are none.
func (m *mover) some(ctx context.Context) (more bool, err error) {
	var found, chunks []Chunk
	var rows, places []int64
	err = m.DB.Read(ctx, func(tx db.Tx) error {
		found, rows = nil, nil
		return tx.Each(func(row db.Rows) error {
			var c Chunk
			var id int64
			err := row.Scan(&id, &c.Sum, &c.Data, &c.Object)
			found, rows = append(found, c), append(rows, id)
			return err
		}, `SELECT k.id, k.sha256, k.data, coalesce(k.object, '') FROM file_chunk k WHERE k.id > ? AND `+m.elsewhere()+
			` ORDER BY k.id LIMIT ?`, m.after, movedAtOnce)
	})
	if err != nil || len(found) == 0 {
		return false, err
	}
	m.after = rows[len(rows)-1]
	for i, c := range found {
		if c.Object != "" {
			c.Data, err = m.Content(ctx, c.Object, c.Sum)
			if err != nil && !errors.Is(err, ErrDamaged) {
				return false, err
			}
		}
		if !bytes.Equal(NewChunk(c.Data).Sum, c.Sum) {
			m.done.Damaged++
			continue
		}
		chunks, places = append(chunks, c), append(places, rows[i])
	}
	moved := slices.Clone(chunks)
	if m.to == InObjects {
		return true, m.toObjects(ctx, places, chunks, moved)
	}
	for i := range moved {
		moved[i].Object = ""
	}
	return true, m.write(ctx, places, chunks, moved)
}

// toObjects moves chunks to the object storage.
func (m *mover) toObjects(ctx context.Context, rows []int64, chunks, moved []Chunk) error {
	Name(moved)
	err := m.DB.Write(db.Yielding(ctx), func(tx db.Tx) error { return m.Announce(tx, moved) })
	if err != nil {
		return err
	}
	defer m.GiveUp(ctx, moved) // content that is stored by then stays
	if err := m.Put(ctx, moved); err != nil {
		return err
	}
	return m.write(ctx, rows, chunks, moved)
}

// write changes the rows of chunks, if they still exist unchanged.
func (m *mover) write(ctx context.Context, rows []int64, before, after []Chunk) error {
	var done Moved
	err := m.DB.Write(db.Yielding(ctx), func(tx db.Tx) error {
		done = m.done
		for i, row := range rows {
			moved, err := Change(tx, row, before[i], after[i])
			if err != nil {
				return err
			}
			if moved {
				done.Chunks++
				done.Bytes += int64(len(after[i].Data))
			}
		}
		return nil
	})
	if err == nil {
		m.done = done
	}
	return err
}
