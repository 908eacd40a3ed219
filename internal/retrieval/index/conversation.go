package index

import (
	"cmp"
	"slices"
)

// Turn is a memory's place in a conversation. The memories of a conversation are in the order of
// their times, and of their rows where times are equal. A conversation never spans partitions.
type Turn struct {
	Conversation int64  // tells the conversations of a partition apart
	At           int64  // when it was said
	Speaker      string // who said it; empty = not known
	Asks         bool   // whether it ends with a question
}

// turn is a Turn in the index.
type turn struct {
	Turn
	*conversation
}

// conversation is a conversation in a partition.
type conversation struct {
	id       int64
	turns    []*memory // in order
	speakers []string  // the first ones
}

// mostSpeakers is how many names a conversation looks up. Further names are held with each of their turns.
const mostSpeakers = 16

// join makes a memory part of its conversation.
func (p *partition) join(m *memory, t *Turn) {
	if t == nil {
		return
	}
	c := p.conversations[t.Conversation]
	if c == nil {
		c = &conversation{id: t.Conversation}
		if p.conversations == nil {
			p.conversations = make(map[int64]*conversation)
		}
		p.conversations[t.Conversation] = c
	}
	m.turn = &turn{*t, c}
	if i := slices.Index(c.speakers, t.Speaker); i >= 0 {
		m.turn.Speaker = c.speakers[i] // held once
	} else if len(c.speakers) < mostSpeakers {
		c.speakers = append(c.speakers, t.Speaker)
	}
	at, _ := c.place(m)
	c.turns = slices.Insert(c.turns, at, m)
	p.turns++
}

// leave takes a memory out of its conversation.
func (p *partition) leave(m *memory) {
	if m.turn == nil {
		return
	}
	c := m.turn.conversation
	if at, ok := c.place(m); ok {
		c.turns = slices.Delete(c.turns, at, at+1)
	}
	if len(c.turns) == 0 {
		delete(p.conversations, c.id)
	}
	m.turn = nil
	p.turns--
}

// place returns where a memory stands, or would stand, in the conversation.
func (c *conversation) place(m *memory) (at int, ok bool) {
	return slices.BinarySearchFunc(c.turns, m, func(a, b *memory) int {
		return cmp.Or(cmp.Compare(a.turn.At, b.turn.At), cmp.Compare(a.row, b.row))
	})
}
