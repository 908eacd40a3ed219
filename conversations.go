package souvenir

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/portions"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/internal/trash"
	"github.com/souvenir-ai/souvenir/internal/turns"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// ConversationCollection is the collection of the turns of conversations. It is created when first needed.
const ConversationCollection = kernel.ConversationCollection

const (
	maxBegins   = 120 // characters of ConversationInfo.Begins
	turnsAtOnce = 256 // turns or conversations that a transaction of an iteration reads
)

// Conversation is a handle to a conversation, returned by [Store.Conversation]. It only holds names: a conversation
// exists while it has turns. It is safe for concurrent use.
//
// Each turn is a memory: searches find it, it has revisions, files and links, and it is shared, exported and deleted
// like any other. The metadata of that memory holds conversation_id (the conversation's key), role, speaker and
// tool_calls. A memory stored in another way with this conversation_id in the same place is a turn of the conversation,
// too.
//
// Turns are ordered by time, and no two appended turns have the same time; see [Conversation.Append]. A time is
// therefore a position. Updates, restoring from the trash, exports and imports keep it.
type Conversation struct {
	store *Store
	key   string
	place ConversationPlace
	err   error // of the key or the place
}

// ConversationPlace says where a conversation is. A key names one conversation in each place.
type ConversationPlace struct {
	Collection  string // empty means ConversationCollection
	ProjectID   string // the project; empty: outside any, or the one project of a view that is limited to one
	ProjectName string // the project by name
}

// ConversationInfo describes a conversation.
type ConversationInfo struct {
	Key         string    `json:"key"`
	Collection  string    `json:"collection_name"`
	ProjectID   string    `json:"project_id,omitempty"`
	ProjectName string    `json:"project_name,omitempty"`
	Owner       string    `json:"owner"`               // user id of its collection's owner
	SharedBy    string    `json:"shared_by,omitempty"` // as in [Memory]
	Begins      string    `json:"begins"`              // the beginning of the turn that was stored first
	Turns       int       `json:"turns"`               // number of turns
	FirstAt     time.Time `json:"first_at"`            // the time of its first turn
	LastAt      time.Time `json:"last_at"`             // the time of its last turn
}

// ConversationList says which conversations [Store.Conversations] returns.
type ConversationList struct {
	Collection  string // empty means ConversationCollection
	ProjectID   string // only conversations of this project; empty means no such limit
	ProjectName string // the project by name

	Limit  int // conversations to return; zero means all
	Offset int // conversations to skip before them
}

// Conversation returns a handle to the conversation with a key: any text of at most 512 bytes that is not blank. It
// reads and stores nothing. Give at most one place; without one, the place is the collection ConversationCollection
// outside any project. An invalid key or place makes every method return an error.
func (s *Store) Conversation(key string, in ...ConversationPlace) *Conversation {
	c := &Conversation{store: s, key: key}
	defer setGoNames[ConversationPlace](&c.err, "key", "key", "in", "in")
	if len(in) > 1 {
		c.err = invalid("in", "{} has %d places; a conversation is in one", len(in))
		return c
	}
	if len(in) == 1 {
		c.place = in[0]
	}
	c.place.Collection = cmp.Or(c.place.Collection, ConversationCollection)
	if c.err = valid.Key(key); c.err == nil && strings.TrimSpace(key) == "" {
		c.err = invalid("key", "{} is %s, white space only; give the key of the conversation", show(key))
	}
	if c.err == nil {
		c.err = valid.Name("collection_name", c.place.Collection)
	}
	if c.err == nil {
		c.err = valid.Project(c.place.ProjectID, c.place.ProjectName)
	}
	if c.place.ProjectID == "" && c.place.ProjectName == "" && len(s.access.Projects) == 1 {
		c.place.ProjectID = s.access.Projects[0]
	}
	return c
}

// Key returns the key of the conversation.
func (c *Conversation) Key() string { return c.key }

// find returns the rows of the conversation's place; false: nothing is stored there, or this view does not see it.
func (c *Conversation) find(tx db.Tx, v viewer) (kernel.Conversation, bool, error) {
	at := kernel.Conversation{Hash: turns.Hash(c.key), Viewer: v}
	owner, project, known, err := naming.OwnerIn(tx, v, c.place.ProjectID, c.place.ProjectName)
	if err != nil || !known {
		return at, false, err
	}
	at.Partition, err = kernel.VisiblePartition(tx, v, owner, c.place.Collection, project)
	return at, at.Partition != 0, err
}

// describe notes the conversation in an operation.
func (c *Conversation) describe(o *operation) {
	if o != nil {
		o.Conversation = c.key
		o.in(ProjectRef{ID: c.place.ProjectID, Name: c.place.ProjectName})
	}
}

// read runs fn on one snapshot, unless there is nothing to read.
func (c *Conversation) read(ctx context.Context, fn func(tx db.Tx, v viewer, at kernel.Conversation) error) error {
	if c.err != nil {
		return c.err
	}
	return c.store.read(ctx, func(tx db.Tx, v viewer) error {
		at, found, err := c.find(tx, v)
		if err != nil || !found {
			return err
		}
		return fn(tx, v, at)
	})
}

// Info returns the number and times of the conversation's turns. For one that does not exist, or that this view may not
// see, it returns the key with zero turns.
func (c *Conversation) Info(ctx context.Context) (info ConversationInfo, err error) {
	defer setGoNames[ConversationPlace](&err)
	err = c.read(ctx, func(tx db.Tx, v viewer, at kernel.Conversation) error {
		heads, err := at.Head(tx)
		if err != nil {
			return err
		}
		infos, err := c.store.conversationInfos(tx, v, heads)
		if len(infos) > 0 {
			info = infos[0]
		}
		return err
	})
	info.Key = c.key
	return info, err
}

// Clear deletes all turns that the conversation has when it begins, and returns how many. They go to the trash, each as
// an entry that can be restored; with Erase they are erased, which only the owner of their place may do. WithMemories
// is ignored. It deletes up to a thousand in one commit, so that other writers get their turn: after an error some may
// be gone, and a second call deletes the rest.
func (c *Conversation) Clear(ctx context.Context, options *DeletionOptions) (deleted int, err error) {
	if c.err != nil {
		return 0, c.err
	}
	gone, err := hooked(ctx, c.store, OperationDelete, "Conversation.Clear",
		func(ctx context.Context, o *operation) (deletion, error) {
			c.describe(o)
			if err := o.delete(ctx, options); err != nil {
				return deletion{}, err
			}
			n, err := c.clearAll(db.Freeing(ctx), options.orDefault().Erase)
			return deletion{n}, err
		})
	return gone.count, err
}

func (c *Conversation) clearAll(ctx context.Context, forGood bool) (deleted int, err error) {
	defer setGoNames[ConversationPlace](&err, "key", "key")
	defer setGoNames[DeletionOptions](&err)
	last := int64(0)
	err = c.store.inPortions(ctx, func(p trash.Portion) (done bool, err error) {
		gone, first := 0, last == 0
		err = c.store.write(ctx, func(tx db.Tx, v viewer) error {
			gone, done = 0, true
			at, found, err := c.find(tx, v)
			if err != nil || !found {
				return err
			}
			if first {
				if err := tx.QueryRow(`SELECT coalesce(max(id), 0) FROM memory`).Scan(&last); err != nil {
					return err
				}
			}
			gone, done, err = c.clear(tx, v, at, p, last, forGood)
			return err
		})
		if err == nil {
			deleted += gone
		}
		return done, err
	})
	if err == nil && forGood && deleted > 0 {
		err = wrap(c.store.scrubSoon(ctx))
	}
	return deleted, err
}

// clear deletes one portion of the turns up to the row last.
func (c *Conversation) clear(tx db.Tx, v viewer, at kernel.Conversation, p trash.Portion, last int64,
	forGood bool) (gone int, done bool, err error) {
	rows, err := at.StoredUpTo(tx, last, p.Rows)
	if err != nil || len(rows) == 0 {
		return 0, true, err
	}
	found, err := kernel.LoadRows(tx, v, kernel.WholeContent, rows)
	if err != nil || len(found) == 0 {
		return 0, true, err
	}
	t := c.store.newTrasher(tx, v, p)
	place, err := t.Place(at.Partition)
	switch {
	case err != nil:
		return 0, false, err
	case !found[0].Writable:
		return 0, false, kernel.SharedReadOnly(tx, v, "key", "conversation", c.key, found[0].Owner)
	case forGood && place.OwnerRow != v.User:
		return 0, false, newError(KindForbidden, "Erase",
			"conversation %s belongs to another user, who alone can erase it; without Erase it moves to the trash",
			show(c.key))
	case forGood:
		return len(rows), len(rows) < p.Rows, t.EraseMemories(rows...)
	}
	size := int64(0)
	for i, m := range found {
		if size += int64(len(m.Content)); i > 0 && size > p.Bytes {
			return i, false, nil
		}
		if err := t.Memory(trashed(m)); err != nil {
			return 0, false, err
		}
	}
	return len(found), len(rows) < p.Rows, nil
}

// Conversations iterates over the visible conversations of a collection, those with the latest turns first: the
// caller's own, and those in the caller's projects. It finds them when it begins, with their counts and times, and
// holds no lock and no transaction while the caller works; conversations that are gone when their turn comes are
// skipped. With Limit and Offset it returns a page. The sequence ends after the first error.
func (s *Store) Conversations(ctx context.Context, l ConversationList) iter.Seq2[ConversationInfo, error] {
	return portions.ByRow(turnsAtOnce, func() ([]kernel.ConversationHead, error) { return s.listConversations(ctx, l) },
		func(heads []kernel.ConversationHead) (infos []ConversationInfo, err error) {
			err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
				infos, err = s.conversationInfos(tx, v, heads)
				return err
			})
			return infos, err
		})
}

// listConversations returns the heads of the conversations of a list.
func (s *Store) listConversations(ctx context.Context, l ConversationList) (heads []kernel.ConversationHead,
	err error) {
	defer setGoNames[ConversationList](&err)
	l.Collection = cmp.Or(l.Collection, ConversationCollection)
	if err := valid.Name("collection_name", l.Collection); err != nil {
		return nil, err
	}
	if err := valid.Project(l.ProjectID, l.ProjectName); err != nil {
		return nil, err
	}
	for _, bound := range []struct {
		name string
		n    int
	}{{"limit", l.Limit}, {"offset", l.Offset}} {
		if err := checkRange(bound.name, bound.n, 0, maxOffset); err != nil {
			return nil, err
		}
	}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		heads = nil
		project := int64(0)
		if l.ProjectID != "" || l.ProjectName != "" {
			p, err := naming.Find(tx, v, l.ProjectID, l.ProjectName)
			if err != nil || p == nil {
				return err
			}
			project = p.Row
		}
		var err error
		heads, err = kernel.ConversationHeads(tx, v, l.Collection, project, cmp.Or(l.Limit, maxOffset), l.Offset)
		return err
	})
	return heads, err
}

// conversationInfos describes the conversations of heads, and skips memories without a conversation key.
func (s *Store) conversationInfos(tx db.Tx, v viewer, heads []kernel.ConversationHead) ([]ConversationInfo, error) {
	rows := make([]int64, len(heads))
	of := make(map[int64]kernel.ConversationHead, len(heads))
	for i, h := range heads {
		rows[i], of[h.Row] = h.Row, h
	}
	found, err := kernel.LoadRows(tx, v, kernel.WholeContent, rows)
	var infos []ConversationInfo
	for _, m := range found {
		key, h := turns.Conversation(m.Own), of[m.Row]
		if key == "" {
			continue
		}
		infos = append(infos, ConversationInfo{Key: key, Collection: m.Collection, ProjectID: m.ProjectID,
			ProjectName: m.ProjectName, Owner: m.Owner, SharedBy: m.SharedBy, Begins: shorten.Words(m.Content, maxBegins),
			Turns: h.Turns, FirstAt: kernel.ToTime(h.First), LastAt: kernel.ToTime(h.Last)})
	}
	return infos, err
}

// The event types that a context continues. They are compared without regard to case.
const (
	EventConversation = "conversation" // a conversation in progress
	EventCase         = "case"         // a case in progress
)
