package retrieval

import (
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/embedding/static"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/retrieval/index"
	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
	"github.com/souvenir-ai/souvenir/internal/text"
	"github.com/souvenir-ai/souvenir/internal/turns"
)

// Source has the fields of a memory from which the index is made, as in the database.
type Source struct {
	Row       int64
	ID        string
	Partition int64
	Content   string
	Tags      string      // one a line
	Turn      *turns.Turn // as stored; nil: none
	Passages  []kernel.Passage
}

// memory returns the indexed data of a memory.
func (s *Source) memory() (index.Memory, error) {
	m := index.Memory{Row: s.Row, ID: s.ID, Partition: s.Partition,
		Sketch: similarity.SketchOf(similarity.Read(s.Content)), Entries: make([]index.Entry, 0, len(s.Passages))}
	if t := s.Turn; t != nil {
		m.Turn = &index.Turn{Conversation: t.Conversation, At: t.At, Speaker: t.Speaker, Asks: turns.Asks(s.Content)}
	}
	for i := range s.Passages {
		p := &s.Passages[i]
		if p.Start < 0 || p.Length < 0 || p.Start > len(s.Content) || p.Length > len(s.Content)-p.Start {
			return m, fault.Damaged(kernel.ErrOutside, "the passages of memory %d", s.Row)
		}
		vector, err := kernel.DecodeVector(p.Stored)
		if err != nil {
			return m, err
		}
		if vector != nil {
			// The index relies on unit vectors; those of a damaged file may be anything.
			if vector, err = kernel.UnitVector(vector, len(vector)); err != nil {
				return m, fault.Damaged(err, "a vector")
			}
		}
		piece := s.Content[p.Start : p.Start+p.Length]
		e := index.Entry{Passage: p.ID, Vector: vector, Words: static.Default().AppendWords(nil, piece),
			Span: index.Span{Start: uint32(p.Start), End: uint32(p.Start + p.Length)}}
		if p.Indexed != "" {
			e.Terms = strings.Split(p.Indexed, " ")
		} else {
			e.Terms = text.Terms(piece)
		}
		if i == 0 {
			e.Terms = text.AppendTerms(e.Terms, s.Tags)
		}
		m.Entries = append(m.Entries, e)
	}
	return m, nil
}

// entries reads the indexed data of some memories. It skips vectors that are neither of the given profile nor
// callers' own.
func entries(tx db.Tx, profile int64, rows []int64) ([]index.Memory, error) {
	list := db.List(rows)
	var sources []Source
	place := map[int64]int{}
	err := tx.Each(func(row db.Rows) error {
		var s Source
		var turn turns.Turn
		if err := row.Scan(&s.Row, &s.ID, &s.Partition, &s.Content, &s.Tags, &turn.Conversation, &turn.At,
			&turn.Speaker); err != nil {
			return err
		}
		if turn.Conversation != 0 {
			s.Turn = &turn
		}
		place[s.Row] = len(sources)
		sources = append(sources, s)
		return nil
	}, `SELECT memory.id, uid, memory.partition_id, content, coalesce((SELECT string_agg(tag, `+db.Newline+
		` ORDER BY position) FROM memory_tag WHERE memory_id = memory.id), ''),
			coalesce(t.conversation, 0), coalesce(t.at, 0), coalesce(t.speaker, '')
		FROM memory LEFT JOIN turn t ON t.memory_id = memory.id AND t.partition_id = memory.partition_id
		WHERE memory.id IN `+db.Integers, list)
	if err != nil {
		return nil, err
	}
	err = tx.Each(func(row db.Rows) error {
		var memory int64
		var p kernel.Passage
		if err := row.Scan(&p.ID, &memory, &p.Start, &p.Length, &p.Stored); err != nil {
			return err
		}
		i, ok := place[memory]
		if !ok {
			return fault.Damaged(kernel.ErrOutside, "the passages of memory %d", memory)
		}
		sources[i].Passages = append(sources[i].Passages, p)
		return nil
	}, `SELECT id, memory_id, start, length, CASE WHEN profile_id = ? OR profile_id IN (SELECT id FROM profile
		WHERE model = ?) THEN vector END
		FROM passage WHERE memory_id IN `+db.Integers+` ORDER BY id`, profile, kernel.OwnVectors, list)
	if err != nil {
		return nil, err
	}
	memories := make([]index.Memory, len(sources))
	for i := range sources {
		if memories[i], err = sources[i].memory(); err != nil {
			return nil, err
		}
	}
	return memories, nil
}
