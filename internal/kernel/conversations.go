package kernel

import (
	"fmt"
	"math"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/turns"
)

// Conversation is a conversation in one place. Its turns are ordered by time, then by row.
type Conversation struct {
	Partition int64
	Hash      int64 // of its name; see package turns
	Viewer    Viewer
}

// Position is a place in a conversation: that of a turn, or one before or after all turns.
type Position struct{ At, Row int64 }

// The ends of a conversation.
var (
	Beginning = Position{math.MinInt64, math.MinInt64}
	End       = Position{math.MaxInt64, math.MaxInt64}
)

// Before returns the positions of the last turns before a position, the latest first. most bounds their number.
func (c Conversation) Before(tx db.Tx, p Position, most int) ([]Position, error) {
	return c.positions(tx, `(at, memory_id) < (?, ?) ORDER BY at DESC, memory_id DESC LIMIT ?`, p.At, p.Row, most)
}

// After returns the positions of the first turns after a position, the earliest first. most bounds their number.
func (c Conversation) After(tx db.Tx, p Position, most int) ([]Position, error) {
	return c.positions(tx, `(at, memory_id) > (?, ?) ORDER BY at, memory_id LIMIT ?`, p.At, p.Row, most)
}

func (c Conversation) positions(tx db.Tx, condition string, args ...any) ([]Position, error) {
	number, err := conversationNumber(tx, c.Partition, c.Hash)
	if err != nil {
		return nil, err
	}
	var all []Position
	err = tx.Each(func(row db.Rows) error {
		var p Position
		err := row.Scan(&p.At, &p.Row)
		all = append(all, p)
		return err
	}, `SELECT at, memory_id FROM turn WHERE partition_id = ? AND conversation = ?`+c.Viewer.aliveTurn()+` AND `+condition,
		append([]any{c.Partition, number}, args...)...)
	return all, err
}

// Place returns the position of a memory, and whether it is a turn of this conversation.
func (c Conversation) Place(tx db.Tx, memory int64) (Position, bool, error) {
	found, err := c.positions(tx, `memory_id = ?`, memory)
	if err != nil || len(found) == 0 {
		return Position{}, false, err
	}
	return found[0], true, nil
}

// sameTime is the assumed precision of given times, in microseconds: many clocks and formats count in seconds.
const sameTime = 1_000_000

// TimeFor returns the time for a turn to append, so that no two turns have the same time and times have the order of
// the turns. Without a given time it is now, or later if necessary to follow the last turn. If the given time is less
// than a second before the last turn's, the result is right after that. An earlier time is kept, or moved to the next
// free one. Turns later than the horizon are ignored: their clock was wrong.
func (c Conversation) TimeFor(tx db.Tx, given *int64, now, horizon int64) (int64, error) {
	newest, err := c.Before(tx, Position{horizon, math.MaxInt64}, 1)
	if err != nil {
		return 0, err
	}
	at := now
	if given != nil {
		at = *given
	}
	if len(newest) == 0 || newest[0].At < at {
		return at, nil
	}
	if last := newest[0].At; given == nil || last-at < sameTime {
		return last + 1, nil
	}
	taken, err := c.positions(tx, `at = ? LIMIT 1`, at)
	if err != nil || len(taken) == 0 {
		return at, err
	}
	free, err := c.positions(tx, `at >= ? AND NOT EXISTS (SELECT 1 FROM turn n WHERE n.partition_id = turn.partition_id
		AND n.conversation = turn.conversation AND n.at = turn.at + 1) ORDER BY at LIMIT 1`, at)
	if err != nil || len(free) == 0 {
		return at, err
	}
	return free[0].At + 1, nil
}

// TurnKey returns the key of the memory that holds a conversation's turn with a given key.
func (c Conversation) TurnKey(key string) string { return turnKeyPrefix(c.Hash) + key }

func turnKeyPrefix(hash int64) string { return fmt.Sprintf("%016x/", hash) }

// MaxTurnKey is the maximum length of a turn's own key, in bytes.
const MaxTurnKey = 256

// Around returns the position of a turn with those around it, in their order.
func (c Conversation) Around(tx db.Tx, p Position, before, after int) ([]Position, error) {
	all, err := c.Before(tx, p, before)
	if err != nil {
		return nil, err
	}
	slices.Reverse(all)
	following, err := c.After(tx, p, after)
	return slices.Concat(all, []Position{p}, following), err
}

// StoredUpTo returns the rows of the turns that were stored first, up to a row. most bounds their number.
func (c Conversation) StoredUpTo(tx db.Tx, last int64, most int) ([]int64, error) {
	number, err := conversationNumber(tx, c.Partition, c.Hash)
	if err != nil {
		return nil, err
	}
	return db.Column[int64](tx, `SELECT memory_id FROM turn WHERE partition_id = ? AND conversation = ?
		AND memory_id <= ?`+c.Viewer.aliveTurn()+` ORDER BY at, memory_id LIMIT ?`, c.Partition, number, last, most)
}

// ConversationHead summarizes the rows of a conversation's turns.
type ConversationHead struct {
	Turns       int
	First, Last int64 // times
	Row         int64 // of the turn that was stored first
}

// Head returns the head of the conversation, or none if it has no turns.
func (c Conversation) Head(tx db.Tx) ([]ConversationHead, error) {
	number, err := conversationNumber(tx, c.Partition, c.Hash)
	if err != nil {
		return nil, err
	}
	return conversationHeads(tx, `partition_id = ? AND conversation = ?`+c.Viewer.aliveTurn(), ``, c.Partition, number)
}

// ConversationHeads returns the heads of the visible conversations in the collections of a name, those with the latest
// turns first. A project other than 0 limits them to that project.
func ConversationHeads(tx db.Tx, v Viewer, collection string, project int64, limit, offset int) ([]ConversationHead,
	error) {
	owners, err := v.Owners(tx)
	if err != nil {
		return nil, err
	}
	is, stored, err := sealedrows.IsAny(tx, sealedrows.CollectionName, owners, `c.name`, collection)
	if err != nil {
		return nil, err
	}
	visible, args := v.Visible()
	return conversationHeads(tx, `partition_id IN (SELECT p.id FROM partition p JOIN collection c
		ON c.id = p.collection_id WHERE `+is+` AND (? = 0 OR p.project_id = ?) AND `+visible+`)`+v.aliveTurn(),
		` ORDER BY 3 DESC, partition_id, conversation LIMIT ? OFFSET ?`,
		slices.Concat([]any{stored, project, project}, args, []any{limit, offset})...)
}

func conversationHeads(tx db.Tx, condition, order string, args ...any) (heads []ConversationHead, err error) {
	err = tx.Each(func(row db.Rows) error {
		var h ConversationHead
		err := row.Scan(&h.Turns, &h.First, &h.Last, &h.Row)
		heads = append(heads, h)
		return err
	}, `SELECT count(*), min(at), max(at), min(memory_id) FROM turn WHERE `+condition+
		` GROUP BY partition_id, conversation`+order, args...)
	return heads, err
}

// VisiblePartition returns the row of the partition of an owner's collection and a project (0: none). It is 0 if the
// partition does not exist or the viewer does not see it.
func VisiblePartition(tx db.Tx, v Viewer, owner int64, collection string, project int64) (int64, error) {
	is, stored, err := sealedrows.Is(tx, sealedrows.CollectionName, owner, `c.name`, collection)
	if err != nil {
		return 0, err
	}
	visible, args := v.Visible()
	rows, err := db.Column[int64](tx, `SELECT p.id FROM partition p JOIN collection c ON c.id = p.collection_id
		WHERE c.owner_id = ? AND `+is+` AND coalesce(p.project_id, 0) = ? AND `+visible+` ORDER BY p.id LIMIT 1`,
		append([]any{owner, stored, project}, args...)...)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0], nil
}

// OwnTurnKey returns the own key of a turn from the key and the metadata of its memory; empty: it has none.
func OwnTurnKey(key string, metadata map[string]any) string {
	prefix := turnKeyPrefix(turns.Hash(turns.Conversation(metadata)))
	if len(key) > len(prefix) && key[:len(prefix)] == prefix {
		return key[len(prefix):]
	}
	return ""
}
