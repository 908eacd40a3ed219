package kernel

import (
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/json/jsonobject"
	"github.com/souvenir-ai/souvenir/internal/sealing/sealedrows"
	"github.com/souvenir-ai/souvenir/internal/turns"
)

// keptTurn returns the turn of a memory, nil for none.
type keptTurn struct {
	row, partition int64
	turn           *turns.Turn
}

// readTurns computes the turns of some memories from their rows. The event time is an expression: a file in migration
// has no such column yet.
func readTurns(tx db.Tx, rows []int64, eventTime string) ([]keptTurn, error) {
	var all []keptTurn
	err := tx.Each(func(row db.Rows) error {
		var k keptTurn
		var m turns.Memory
		var metadata string
		if err := row.Scan(&k.row, &k.partition, &m.Content, &m.EventType, &metadata, &m.Created, &m.InProject,
			&m.EventTime); err != nil {
			return err
		}
		m.Metadata = object(metadata)
		k.turn = turns.Of(m)
		all = append(all, k)
		return nil
	}, `SELECT m.id, m.partition_id, m.content, coalesce(m.event_type, ''), m.metadata, m.created_at,
		p.project_id IS NOT NULL, `+eventTime+`
		FROM memory m JOIN partition p ON p.id = m.partition_id WHERE m.id IN `+db.Integers, db.List(rows))
	return all, err
}

// KeepTurns records which of some memories are parts of conversations, after they were written. It reads them, so that
// what it records is the same for each way of writing.
func KeepTurns(tx db.Tx, rows ...int64) error { return keepTurns(tx, rows, `m.event_time`) }

// KeepTurn is [KeepTurns] for one memory, whose states before and after an update are known: if it was no turn and is
// none, nothing is recorded.
func KeepTurn(tx db.Tx, row int64, before, after turns.Memory) error {
	if turns.Of(before) == nil && turns.Of(after) == nil {
		return nil
	}
	return KeepTurns(tx, row)
}

func keepTurns(tx db.Tx, rows []int64, eventTime string) error {
	all, err := readTurns(tx, rows, eventTime)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM turn WHERE memory_id IN `+db.Integers, db.List(rows)); err != nil {
		return err
	}
	for _, k := range all {
		if err := addTurn(tx, k.row, k.partition, k.turn); err != nil {
			return err
		}
	}
	return nil
}

// WrongTurns returns the memories whose recorded turn is missing or differs from the memory.
func WrongTurns(tx db.Tx, rows []int64) ([]int64, error) {
	type recorded struct {
		partition int64
		turns.Turn
	}
	found := map[int64]recorded{}
	err := tx.Each(func(row db.Rows) error {
		var memory int64
		var r recorded
		err := row.Scan(&memory, &r.partition, &r.Conversation, &r.At, &r.Speaker)
		found[memory] = r
		return err
	}, `SELECT memory_id, partition_id, conversation, at, speaker FROM turn WHERE memory_id IN `+db.Integers,
		db.List(rows))
	if err != nil {
		return nil, err
	}
	all, err := readTurns(tx, rows, `m.event_time`)
	var wrong []int64
	for _, k := range all {
		r, there := found[k.row]
		if k.turn != nil && err == nil {
			k.turn.Conversation, err = conversationNumber(tx, k.partition, k.turn.Conversation)
		}
		if there != (k.turn != nil) || there && r != (recorded{k.partition, *k.turn}) {
			wrong = append(wrong, k.row)
		}
	}
	return wrong, err
}

// AddTurn records the place of a new memory in its conversation, as [KeepTurns] does, without reading the memory. It
// returns the turn with the number of its conversation as stored; nil: the memory is not a turn.
func AddTurn(tx db.Tx, row, partition int64, m turns.Memory) (*turns.Turn, error) {
	t := turns.Of(m)
	return t, addTurn(tx, row, partition, t)
}

// addTurn turns the hash of the turn's conversation into its number as stored.
func addTurn(tx db.Tx, row, partition int64, t *turns.Turn) error {
	if t == nil {
		return nil
	}
	speaker, err := any(t.Speaker), error(nil)
	if sealedrows.Seals(tx) {
		var owner int64
		if owner, err = OwnerOfPartition(tx, partition); err != nil {
			return err
		}
		if speaker, err = sealedrows.SealText(tx, owner, sealedrows.TurnSpeaker, t.Speaker); err != nil {
			return err
		}
		if t.Conversation, err = sealedrows.BlindNumber(tx, owner, ofConversation, t.Conversation); err != nil {
			return err
		}
	}
	return db.Queue(tx, `INSERT INTO turn (memory_id, partition_id, conversation, at, speaker) VALUES (?, ?, ?, ?, ?)`,
		row, partition, t.Conversation, t.At, speaker)
}

// ofConversation is the purpose of blinded hashes of conversations.
const ofConversation = "turn.conversation"

// conversationNumber returns how the hash of a conversation in a partition is stored.
func conversationNumber(tx db.Tx, partition, hash int64) (int64, error) {
	if !sealedrows.Seals(tx) || partition == 0 {
		return hash, nil
	}
	owner, err := OwnerOfPartition(tx, partition)
	if err != nil {
		return 0, err
	}
	return sealedrows.BlindNumber(tx, owner, ofConversation, hash)
}

// object reads stored metadata, with numbers as callers give them. Damaged metadata is empty.
func object(metadata string) map[string]any {
	read, err := jsonobject.Decode([]byte(metadata))
	if err != nil {
		return nil
	}
	return read
}

// FillTurns records the turns of all memories, for a file from a version without turns.
func FillTurns(tx db.Tx) error {
	return EachBatch(tx, 0, func(rows []int64) error { return keepTurns(tx, rows, `NULL`) })
}
