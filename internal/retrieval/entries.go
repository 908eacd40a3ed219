package retrieval

import (
	"github.com/souvenir-ai/souvenir/internal/alike"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/index"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/static"
	"github.com/souvenir-ai/souvenir/internal/text"
	"github.com/souvenir-ai/souvenir/internal/turns"
)

// entries reads the indexed data of some memories. It skips vectors that are neither of the given profile nor
// callers' own.
func entries(tx db.Tx, profile int64, rows []int64) ([]index.Memory, error) {
	list := db.List(rows)
	var memories []index.Memory
	var contents, tags []string
	place := map[int64]int{}
	err := tx.Each(func(row db.Rows) error {
		var m index.Memory
		var content, tagged string
		var turn index.Turn
		if err := row.Scan(&m.Row, &m.ID, &m.Partition, &content, &tagged, &turn.Conversation, &turn.At,
			&turn.Speaker); err != nil {
			return err
		}
		if turn.Conversation != 0 {
			turn.Asks = turns.Asks(content)
			m.Turn = &turn
		}
		m.Sketch = alike.SketchOf(alike.Read(content))
		place[m.Row] = len(memories)
		memories, contents, tags = append(memories, m), append(contents, content), append(tags, tagged)
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
		var start, length int
		var e index.Entry
		var blob []byte
		if err := row.Scan(&e.Passage, &memory, &start, &length, &blob); err != nil {
			return err
		}
		var err error
		if e.Vector, err = kernel.DecodeVector(blob); err != nil {
			return err
		}
		if e.Vector != nil {
			// The index relies on unit vectors; those of a damaged file may be anything.
			if e.Vector, err = kernel.UnitVector(e.Vector, len(e.Vector)); err != nil {
				return fault.Damaged(err, "a vector")
			}
		}
		i, ok := place[memory]
		if !ok || start < 0 || length < 0 || start > len(contents[i]) || length > len(contents[i])-start {
			return fault.Damaged(kernel.ErrOutside, "the passages of memory %d", memory)
		}
		e.Span = index.Span{Start: uint32(start), End: uint32(start + length)}
		e.Words = static.Default().AppendWords(nil, contents[i][start:start+length])
		e.Terms = text.Terms(contents[i][start : start+length])
		if len(memories[i].Entries) == 0 {
			e.Terms = text.AppendTerms(e.Terms, tags[i])
		}
		memories[i].Entries = append(memories[i].Entries, e)
		return nil
	}, `SELECT id, memory_id, start, length, CASE WHEN profile_id = ? OR profile_id IN (SELECT id FROM profile
		WHERE model = ?) THEN vector END
		FROM passage WHERE memory_id IN `+db.Integers+` ORDER BY id`, profile, kernel.OwnVectors, list)
	return memories, err
}
