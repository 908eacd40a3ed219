package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/budget"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/portions"
	"github.com/souvenir-ai/souvenir/internal/shorten"
	"github.com/souvenir-ai/souvenir/internal/transfer"
	"github.com/souvenir-ai/souvenir/internal/trash"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Memories: what one is, and how one is read, listed and deleted. They are stored in memoryadd.go and changed in
// memorychange.go.

// Limits of a memory.
const (
	MaxContent  = valid.MaxContent  // bytes of content: 1 MiB
	MaxMetadata = valid.MaxMetadata // bytes of metadata, as JSON: 64 KiB
	MaxTags     = valid.MaxTags     // tags of a memory: 64
	MaxTag      = valid.MaxTag      // characters of a tag: 128
	MaxRelated  = valid.MaxRelated  // related memories of a memory: 256
	MaxKey      = valid.MaxKey      // bytes of a memory's own key: 512
	MaxWord     = valid.MaxWord     // characters of event_type and of state: 64
)

// The states with a meaning to the store. They are compared without regard to case; no state means active.
const (
	StateActive    = "active"
	StateCompleted = "completed"
	StateArchived  = "archived"
)

// Importance says how much a memory matters.
type Importance string

// The values of [Importance]. The empty value means not set.
const (
	ImportanceLow      Importance = "low"
	ImportanceMedium   Importance = "medium"
	ImportanceHigh     Importance = "high"
	ImportanceCritical Importance = "critical"
)

// Classification says what kind of memory it is.
type Classification string

// The values of [Classification]. The empty value means not set.
const (
	ClassDo    Classification = "do"
	ClassDont  Classification = "dont"
	ClassTodo  Classification = "todo"
	ClassNotes Classification = "notes"
)

// Memory is a stored text with its metadata.
type Memory struct {
	ID         string
	Key        string // the caller's own; empty: none
	Collection string // name of the collection it is in
	Owner      string // user id of its collection's owner; for a memory in a project, the project's owner
	Content    string

	// The known keys; empty means not set.
	EventType      string // such as project-main, conversation, decision
	State          string // such as active, archived, completed
	ProjectID      string
	ProjectName    string
	Importance     Importance
	Classification Classification
	RuleType       RuleType // of project rules only
	Tags           []string // in the order given
	Related        []string // ids of the memories that this one links to, if they are visible through this view

	// Metadata holds the caller's own keys only, under any names; ShownMetadata adds the known ones.
	Metadata map[string]any

	Revision  int // 1 when stored, one more with each update
	CreatedAt time.Time
	UpdatedAt time.Time
	EventTime time.Time // when the event took place; zero: not given
	ExpiresAt time.Time // from then on it is gone; zero: it stays

	// The memory is valid between these times; ValidUntil is also the start of a memory that supersedes it. Zero: no
	// bound. Searches, listings and contexts show memories that are valid now.
	ValidFrom, ValidUntil time.Time

	Supersedes   string // id of the memory that it replaces
	SupersededBy string // id of the newest memory that replaces it

	// SharedBy is the owner of the memory's project, if that is not the view's user: the name of the account, or the
	// user id if there is none. Empty for the user's own. The text of a memory shared by another user is not the user's
	// own.
	SharedBy string
}

// ShownMetadata returns metadata as the interface shows it: the known keys that are set, and the caller's own. Own keys
// that have the name of a known one, such as state, are in an object "custom".
func (m Memory) ShownMetadata() map[string]any { return attributes(m).Shown() }

// attributes and others below are functions instead of methods: Memory is embedded in types such as Hit, and each
// package that uses a store would compile their methods again.
func attributes(m Memory) kernel.Attributes {
	return kernel.Attributes{
		EventType: m.EventType, State: m.State, ProjectID: m.ProjectID, ProjectName: m.ProjectName,
		Importance: string(m.Importance), Classification: string(m.Classification), RuleType: string(m.RuleType),
		Tags: m.Tags, Related: m.Related, Own: m.Metadata,
	}
}

func setAttributes(m *Memory, a kernel.Attributes) {
	m.EventType, m.State, m.ProjectID, m.ProjectName = a.EventType, a.State, a.ProjectID, a.ProjectName
	m.Importance, m.Classification, m.RuleType = Importance(a.Importance), Classification(a.Classification),
		RuleType(a.RuleType)
	m.Tags, m.Related, m.Metadata = a.Tags, a.Related, a.Own
}

// memoryOf returns a stored memory as callers see it.
func memoryOf(k kernel.Memory) Memory {
	m := Memory{ID: k.ID, Key: k.Key, Collection: k.Collection, Owner: k.Owner, Content: k.Content, SharedBy: k.SharedBy,
		Revision: k.Revision, CreatedAt: kernel.ToTime(k.Created), UpdatedAt: kernel.ToTime(k.Updated),
		EventTime: kernel.TimeOf(k.EventTime), ExpiresAt: kernel.TimeOf(k.Times.Expires),
		ValidFrom: kernel.TimeOf(k.Times.From), ValidUntil: kernel.TimeOf(k.Times.Until), Supersedes: k.Times.Supersedes,
		SupersededBy: k.Successor}
	if k.SupersededAt != nil && (k.Times.Until == nil || *k.SupersededAt < *k.Times.Until) {
		m.ValidUntil = kernel.TimeOf(k.SupersededAt)
	}
	setAttributes(&m, k.Attributes)
	return m
}

// memoryJSON is a memory in the form of the interface, with its metadata decoded or as JSON. A memory in the store has
// all members up to updated_at; one that is cut to fit into a budget may lack them.
type memoryJSON[Metadata any] struct {
	ID           string    `json:"id"`
	Content      string    `json:"content"`
	Collection   string    `json:"collection_name,omitempty"`
	Owner        string    `json:"owner,omitempty"`
	Metadata     Metadata  `json:"metadata"`
	Revision     int       `json:"revision,omitempty"`
	CreatedAt    time.Time `json:"created_at,omitzero"`
	UpdatedAt    time.Time `json:"updated_at,omitzero"`
	SharedBy     string    `json:"shared_by,omitempty"`
	Key          string    `json:"key,omitempty"`
	EventTime    time.Time `json:"event_time,omitzero"`
	ExpiresAt    time.Time `json:"expires_at,omitzero"`
	ValidFrom    time.Time `json:"valid_from,omitzero"`
	ValidUntil   time.Time `json:"valid_until,omitzero"`
	Supersedes   string    `json:"supersedes,omitempty"`
	SupersededBy string    `json:"superseded_by,omitempty"`
}

// writtenMemory is a memory to be encoded.
type writtenMemory = memoryJSON[map[string]any]

func written(m Memory) writtenMemory {
	return writtenMemory{m.ID, m.Content, m.Collection, m.Owner, m.ShownMetadata(), m.Revision, m.CreatedAt, m.UpdatedAt,
		m.SharedBy, m.Key, m.EventTime, m.ExpiresAt, m.ValidFrom, m.ValidUntil, m.Supersedes, m.SupersededBy}
}

// MarshalJSON returns the form of the interface: id, content, collection_name, owner, metadata with the known keys
// inside, revision, created_at and updated_at (RFC 3339, UTC), shared_by if another user owns the project, and key,
// event_time, expires_at, valid_from, valid_until, supersedes and superseded_by if they are set.
func (m Memory) MarshalJSON() ([]byte, error) { return json.Marshal(written(m)) }

// UnmarshalJSON reads the output of MarshalJSON: the known keys of metadata go into their fields. A known key with a
// value of another type stays in Metadata, which is never nil.
func (m *Memory) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var given memoryJSON[json.RawMessage]
	if err := json.Unmarshal(data, &given); err != nil {
		return err
	}
	metadata, err := transfer.ParseMetadata(given.Metadata)
	if err != nil {
		return err
	}
	read := Memory{
		ID: given.ID, Collection: given.Collection, Owner: given.Owner, Content: given.Content, Revision: given.Revision,
		CreatedAt: given.CreatedAt, UpdatedAt: given.UpdatedAt, SharedBy: given.SharedBy, Key: given.Key,
		EventTime: given.EventTime, ExpiresAt: given.ExpiresAt, ValidFrom: given.ValidFrom, ValidUntil: given.ValidUntil,
		Supersedes: given.Supersedes, SupersededBy: given.SupersededBy,
	}
	setAttributes(&read, kernel.AttributesShown(metadata))
	*m = read
	return nil
}

// withMemory reads a memory and the additional members beside it.
func withMemory(data []byte, m *Memory, beside any) error {
	if err := json.Unmarshal(data, beside); err != nil {
		return err
	}
	return m.UnmarshalJSON(data)
}

// shorten cuts the content to a number of characters, and omits own metadata that is too long for a preview. It reports
// whether anything was left out.
func (m *Memory) shorten(characters int) bool {
	whole := m.Content
	m.Content = shorten.Words(whole, characters)
	if budget.Size(m.Metadata) > maxOwnInPreview {
		m.Metadata = nil
		return true
	}
	return m.Content != whole
}

// GetMemory returns a memory by id. A memory that does not exist, or that this view may not see, is ErrNotFound.
func (s *Store) GetMemory(ctx context.Context, id string) (m Memory, err error) {
	defer setGoNames[struct{}](&err, "id", "id")
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		found, err := kernel.LoadMemory(tx, v, id)
		m = memoryOf(found)
		return err
	})
	return m, err
}

// MemoryStatus describes a memory's place in the store: the owners of the memory and its project, the caller's rights,
// and how it is indexed.
type MemoryStatus struct {
	Owner     string `json:"owner"`                // user id of its collection's owner
	OwnerName string `json:"owner_name,omitempty"` // of that account, if there is one

	// The project it is in; empty: none. ProjectOwner is the user id of the project's owner: OWNER/ID names the project
	// unambiguously.
	ProjectID        string `json:"project_id,omitempty"`
	ProjectOwner     string `json:"project_owner,omitempty"`
	ProjectOwnerName string `json:"project_owner_name,omitempty"`

	Writable bool `json:"writable"` // the caller may change and delete it

	Passages   int  `json:"passages"`    // the pieces it is indexed as
	Pending    int  `json:"pending"`     // passages that wait to be embedded: they are found by words only
	OwnVectors bool `json:"own_vectors"` // its collection takes vectors from callers
}

// MemoryStatus returns a memory's place in the store. A memory that does not exist, or that this view may not see,
// is ErrNotFound.
func (h *Insights) MemoryStatus(ctx context.Context, id string) (m MemoryStatus, err error) {
	defer setGoNames[struct{}](&err, "id", "id")
	err = h.s.read(ctx, func(tx db.Tx, v viewer) error {
		found, err := kernel.LoadMemory(tx, v, id)
		if err != nil {
			return err
		}
		names, err := kernel.OwnersOf(tx, v.Namespace, found.Owner, found.ProjectRow)
		if err != nil {
			return err
		}
		m = MemoryStatus{Owner: found.Owner, OwnerName: names.Name, ProjectID: names.ProjectID,
			ProjectOwner: names.ProjectOwner, ProjectOwnerName: names.ProjectOwnerName,
			Writable: found.Writable && !h.s.access.ReadOnly, OwnVectors: found.OwnVectors}
		return tx.QueryRow(`SELECT count(*), count(*) FILTER (WHERE vector IS NULL AND profile_id IS NOT NULL) `+
			`FROM passage WHERE memory_id = ?`, found.Row).Scan(&m.Passages, &m.Pending)
	})
	return m, err
}

// MemoryKey names a memory by the caller's own key and the place that it was stored in.
type MemoryKey struct {
	Collection  string // empty means DefaultCollection
	ProjectID   string // the project; empty: outside any, or the one project of a view that is limited to one
	ProjectName string // the project by name
	Key         string
}

// GetMemoryByKey returns the memory that was stored with a key; see [NewMemory.Key]. One that does not exist, or that
// this view may not see, is ErrNotFound.
func (s *Store) GetMemoryByKey(ctx context.Context, k MemoryKey) (m Memory, err error) {
	defer setGoNames[MemoryKey](&err)
	k.Collection = cmp.Or(k.Collection, DefaultCollection)
	if err := cmp.Or(valid.Key(k.Key), valid.Name("collection_name", k.Collection),
		valid.Project(k.ProjectID, k.ProjectName)); err != nil {
		return Memory{}, err
	}
	if k.ProjectID == "" && k.ProjectName == "" && len(s.access.Projects) == 1 {
		k.ProjectID = s.access.Projects[0]
	}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		owner, project, known, err := naming.OwnerIn(tx, v, k.ProjectID, k.ProjectName)
		if err != nil || !known {
			return cmp.Or(err, unknownKey(k.Key))
		}
		var found []kernel.Memory
		condition, args, err := kernel.WithKey(tx, owner, project, k.Collection, k.Key)
		if err == nil {
			found, err = kernel.LoadMemories(tx, v, kernel.WholeContent, condition, args...)
		}
		if err != nil || len(found) == 0 {
			return cmp.Or(err, unknownKey(k.Key))
		}
		m = memoryOf(found[0])
		return nil
	})
	return m, err
}

func unknownKey(key string) error {
	return newError(KindNotFound, "key", "no memory with the {} %s found there", show(key))
}

// MemoryList says which memories [Store.Memories] returns, and in which order.
type MemoryList struct {
	Collections []string // names; none means all
	ProjectID   string   // only memories of this project; empty means no such limit
	ProjectName string   // the project by name
	Tags        []string // memories with any of these tags
	Keys        []string // memories with any of these keys of the caller's own, at most 1,000; none means all
	Filter      Filter

	WithoutContent bool // leaves Content empty; bulk deletions and updates ignore it

	// AsOf lists memories that were stored by a time and valid then, in the state of that time; zero means memories
	// valid now. Tags and Filter are matched against the current state. See docs/time.md.
	AsOf time.Time

	whenever bool // include memories that are not valid now

	// Sort is any order but SortRelevance; empty means SortCreatedAsc.
	Sort SortOrder
}

// query returns the query without a text that finds the memories of the list.
func (l MemoryList) query() Query {
	return Query{Collections: l.Collections, ProjectID: l.ProjectID, ProjectName: l.ProjectName, Tags: l.Tags,
		Keys: l.Keys, Filter: l.Filter, AsOf: l.AsOf, Sort: l.Sort, whenever: l.whenever}
}

// Memories iterates over all visible memories that match when it begins. It holds no lock and no transaction while the
// caller works, so the loop may call other methods: each memory is returned as it is when its turn comes, and deleted
// memories are skipped. The sequence ends after the first error.
func (s *Store) Memories(ctx context.Context, l MemoryList) iter.Seq2[Memory, error] {
	return portions.ByRow(256, func() (_ []int64, err error) {
		defer setGoNames[MemoryList](&err)
		return s.listRows(ctx, l)
	}, func(rows []int64) (found []Memory, err error) {
		err = s.read(ctx, func(tx db.Tx, v viewer) error {
			stored, err := kernel.LoadRows(tx, v, contentColumn(l.WithoutContent, l.AsOf), rows)
			if err != nil {
				return err
			}
			if found, err = memoriesAsOf(tx, v, stored, l.AsOf); l.WithoutContent {
				for i := range found {
					found[i].Content = ""
				}
			}
			return err
		})
		return found, err
	})
}

// listRows returns the rows of the memories of a listing, in its order.
func (s *Store) listRows(ctx context.Context, l MemoryList) (rows []int64, err error) {
	q := l.query()
	q.Sort = cmp.Or(q.Sort, SortCreatedAsc)
	if err := checkAsOf(l.AsOf); err != nil {
		return nil, err
	}
	if !slices.Contains(memoryOrders[1:], q.Sort) {
		return nil, invalid("sort_order", "{} is %s; expected %s", show(string(q.Sort)),
			oneOf(memoryOrders[1:]))
	}
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		selection, err := s.selection(tx, v, q)
		if err == nil {
			rows, err = selection.All(tx, q.Sort.byTime())
		}
		return err
	})
	return rows, err
}

// DeleteMemory deletes a memory with its history and the links from and to it. It goes to the trash, from which
// [Trash.Restore] restores it under its id, unless Options.KeepTrash turns the trash off. With Erase it is erased,
// which only the owner of its place may do; for others who may write there it is ErrForbidden. Traces in the file are
// then removed as for [Trash.Erase].
func (s *Store) DeleteMemory(ctx context.Context, id string, options *DeletionOptions) error {
	return s.hookedDelete(ctx, "DeleteMemory", func(ctx context.Context, o *operation) (err error) {
		defer setGoNames[struct{}](&err, "id", "id")
		o.names(id)
		if err := o.delete(ctx, options); err != nil {
			return err
		}
		if options.orDefault().Erase {
			return s.eraseMemory(ctx, id)
		}
		return noRoomInTrash(s.write(ctx, func(tx db.Tx, v viewer) error {
			found, err := kernel.LoadForWriting(tx, v, id)
			if err != nil {
				return err
			}
			return s.newTrasher(tx, v, trash.FullPortion()).Memory(trashed(found))
		}), id)
	})
}

// noRoomInTrash adds advice to the error of a disk without room for a deleted memory.
func noRoomInTrash(err error, id string) error {
	if !errors.Is(err, ErrFull) {
		return err
	}
	return causedBy(err, newError(KindFull, "id", "the disk is full, and the room held in reserve is "+
		"too small to move memory %s with its past versions to the trash; free disk space or empty the "+
		"trash, or delete the memory permanently (DeletionOptions.Erase)", show(id)))
}

func (s *Store) eraseMemory(ctx context.Context, id string) error {
	_, err := s.eraseMemoryAfter(ctx, id, 0)
	for past := 64; errors.Is(err, ErrFull) && past > 0; { // a long history does not fit into one transaction
		var erased int64
		switch erased, err = s.eraseMemoryAfter(ctx, id, past); {
		case errors.Is(err, ErrFull):
			past /= 4
		case err == nil:
			if _, err = s.eraseMemoryAfter(ctx, id, 0); erased == 0 {
				past = 0 // no history is left that could make room
			}
		}
	}
	if err != nil {
		return err
	}
	return wrap(s.scrubSoon(ctx))
}

// eraseMemoryAfter erases a memory, or a number of its past versions, and returns how many of these it erased.
func (s *Store) eraseMemoryAfter(ctx context.Context, id string, past int) (erased int64, err error) {
	err = s.write(ctx, func(tx db.Tx, v viewer) error {
		m, err := kernel.LoadForWriting(tx, v, id)
		if err != nil {
			return err
		}
		t := s.newTrasher(tx, v, trash.FullPortion())
		at, err := t.Place(m.Partition)
		if err != nil {
			return err
		}
		if at.OwnerRow != v.User {
			return newError(KindForbidden, "id",
				"memory %s belongs to another user, who alone can erase it; without Erase it goes to the trash", show(id))
		}
		if past > 0 {
			erased, err = trash.ErasePast(tx, m.Row, past)
			return err
		}
		return t.EraseMemories(m.Row)
	})
	return erased, err
}
