package souvenir

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/lifespan"
	"github.com/souvenir-ai/souvenir/internal/recency"
	"github.com/souvenir-ai/souvenir/internal/retrieval"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// New memories: what one is, and how one or many are stored.

// NewMemory describes a memory to store. Only Content is required.
type NewMemory struct {
	// Collection is the name of one of the caller's own collections. Empty means DefaultCollection, which is created
	// when first needed; any other must exist. A memory for another user's project goes into the owner's collection of
	// that name, which is created when first needed.
	Collection string

	Content string // 1 byte to 1 MiB of valid UTF-8

	// The known keys; empty means not set. Where a field is empty, the same key in ShownMetadata counts.
	EventType string // 1 to 64 characters
	State     string // 1 to 64 characters
	// the project it belongs to; an unknown one is created, unless it is another project's name (ErrConflict)
	ProjectID      string
	ProjectName    string // the project by name
	Importance     Importance
	Classification Classification
	RuleType       RuleType // with EventProjectRule only
	Tags           []string // at most 64 of at most 128 characters
	Related        []string // ids of visible memories to link to; at most 256

	// Key is the caller's own key for the memory: any text of at most 512 bytes. It is unique within the memory's place:
	// its collection and project, or its collection outside any project. [Store.PutMemory] stores by it. Empty means
	// none. Project rules cannot have one: a project has one rule of each type anyway.
	Key string

	// IfAbsent stores the memory only if no other one in the same place (collection and project) has exactly this
	// content. Otherwise AddMemory and AddMemories return the oldest such memory unchanged, with EffectUnchanged, and
	// ignore the other fields of this NewMemory. If several calls add the same content at the same time, one of them
	// stores it. It cannot be combined with a Key (use PutMemory) or a rule.
	IfAbsent bool

	EventTime time.Time // when the event took place, in the years 0 to 9999; zero: not given
	CreatedAt time.Time // when the memory was created, at most 10 minutes from now; zero: now

	// ExpiresAt is when the memory expires: from then on no call returns, finds, lists, counts or exports it, and the
	// worker deletes it permanently, bypassing the trash. Zero: never.
	ExpiresAt time.Time

	// ValidFrom and ValidUntil say when the memory is true: from ValidFrom to just before ValidUntil. Zero: no bound.
	// Searches, listings and contexts show memories that are valid now, or at the time AsOf; a memory can always be read
	// by its id or key.
	ValidFrom, ValidUntil time.Time

	// Supersedes is the id of the memory that this one replaces, in the same place (collection and project). The old
	// memory is valid until this one's ValidFrom, or until this one is stored. It is not changed, and is valid again if
	// this memory is deleted. The caller must be allowed to change it, and it must not be a rule.
	Supersedes string

	// Metadata is the caller's own: any JSON object, at most 64 KiB. The store gives no meaning to its keys: a "state" in
	// it is not State. Use [Own] to name such a key in a [Filter].
	Metadata map[string]any

	// ShownMetadata is metadata in the interface's form, as [Memory.ShownMetadata] returns it, for programs that pass on
	// the input of an agent or a file: known keys set the fields above, the object "custom" holds own keys of any name,
	// and all other keys are own keys, too.
	ShownMetadata map[string]any

	// Embedding is the caller's own vector, for a collection with OwnVectors.
	Embedding []float32

	// Similar is the maximum number of near duplicates to report, 0 to 20. Zero asks for none, which is faster.
	Similar int
}

// StoredMemory is a memory as it was stored or changed.
type StoredMemory struct {
	Memory
	Indexed  bool            // searches find it by meaning; false: only by its words, until it has a vector
	Similar  []SimilarMemory // earlier near duplicates, the most similar first
	Warnings []string        // notes for the caller; the memory is stored

	// ProjectCreated reports whether this call created the project.
	ProjectCreated bool

	Effect Effect // the effect of a write by key, or with IfAbsent; empty for other writes
}

// storedOf returns what a write has stored.
func storedOf(w writing.Result) StoredMemory {
	return StoredMemory{Memory: memoryOf(w.Memory), Indexed: w.Indexed, Warnings: w.Warnings,
		ProjectCreated: w.ProjectCreated, Effect: Effect(w.Effect)}
}

// Effect is the effect of a write by key, or with IfAbsent.
type Effect string

// The values of [Effect].
const (
	EffectAdded     Effect = "added"     // there was no memory with this key, or this content
	EffectUpdated   Effect = "updated"   // the memory has a new revision
	EffectUnchanged Effect = "unchanged" // the memory was already in this state
)

// MarshalJSON returns the memory's form with indexed, similar, project_created and warnings.
func (s StoredMemory) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		writtenMemory
		storedJSON
	}{written(s.Memory), storedJSON{s.Indexed, s.Similar, s.ProjectCreated, s.Warnings, s.Effect}})
}

// UnmarshalJSON reads the output of MarshalJSON.
func (s *StoredMemory) UnmarshalJSON(data []byte) error {
	var beside storedJSON
	var m Memory
	if err := withMemory(data, &m, &beside); err != nil {
		return err
	}
	*s = StoredMemory{Memory: m, Indexed: beside.Indexed, Similar: beside.Similar, Warnings: beside.Warnings,
		ProjectCreated: beside.ProjectCreated, Effect: beside.Effect}
	return nil
}

// storedJSON holds the additional members of a stored memory.
type storedJSON struct {
	Indexed        bool            `json:"indexed"`
	Similar        []SimilarMemory `json:"similar,omitempty"`
	ProjectCreated bool            `json:"project_created,omitempty"`
	Warnings       []string        `json:"warnings,omitempty"`
	Effect         Effect          `json:"effect,omitempty"`
}

// AddMemory stores a memory and returns it as stored. When it returns, the memory is durable and every search finds it.
// If the embedder fails, the memory is stored anyway, can be found by its words, and is embedded later.
//
// A project has one rule of each type: storing another memory of event type project-rule changes the existing rule,
// which keeps its id, its collection, and every field not given.
func (s *Store) AddMemory(ctx context.Context, m NewMemory) (StoredMemory, error) {
	added, err := s.AddMemories(ctx, []NewMemory{m}, nil)
	if err != nil {
		return StoredMemory{}, err
	}
	return added[0], nil
}

// BatchOptions change how [Store.AddMemories] and [Store.PutMemories] work. Nil means the zero value.
type BatchOptions struct {
	// Progress receives the stages "embed" (counted in passages) and "store" (in memories). Nil disables it.
	Progress Progress
}

// AddMemories stores many memories in one commit: either all of them or, after an error, none. The error names the
// position of the invalid memory. A key that another memory in the same place already has is ErrConflict.
//
// Other writers wait while it writes, about a tenth of a second for a thousand short memories. [Upkeep.Import] gives
// them turns.
func (s *Store) AddMemories(ctx context.Context, memories []NewMemory, options *BatchOptions) ([]StoredMemory, error) {
	return hooked(ctx, s, OperationStore, "AddMemories",
		func(ctx context.Context, o *operation) (_ []StoredMemory, err error) {
			defer setGoNames[NewMemory](&err, "memories", "memories")
			drafts, err := s.newDrafts(ctx, o, memories)
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(drafts, func(d kernel.Draft) bool { return d.IfAbsent }) {
				return s.storeDrafts(ctx, drafts, options, nil, nil)
			}
			return s.storeOnce(ctx, drafts, options, (*writing.Writer).Add)
		})
}

// PutMemory stores a memory under its key, or updates the memory with this key in the same place to the given state:
// content, metadata, tags and links are replaced, and fields that are not set are removed. CreatedAt only counts for a
// new memory. An existing memory keeps its id, and its previous state is kept as a revision. If it is already in the
// given state, nothing is written. Concurrent calls with the same key result in one memory. See [StoredMemory.Effect].
func (s *Store) PutMemory(ctx context.Context, m NewMemory) (StoredMemory, error) {
	put, err := s.PutMemories(ctx, []NewMemory{m}, nil)
	if err != nil {
		return StoredMemory{}, err
	}
	return put[0], nil
}

// PutMemories stores many memories under their keys, as [Store.PutMemory] does, in one commit: all of them or, after an
// error, none. If several have the same key, the last one counts.
func (s *Store) PutMemories(ctx context.Context, memories []NewMemory, options *BatchOptions) ([]StoredMemory, error) {
	return hooked(ctx, s, OperationStore, "PutMemories",
		func(ctx context.Context, o *operation) (_ []StoredMemory, err error) {
			defer setGoNames[NewMemory](&err, "memories", "memories")
			return s.putMemories(ctx, o, memories, options)
		})
}

func (s *Store) putMemories(ctx context.Context, o *operation, memories []NewMemory,
	options *BatchOptions) ([]StoredMemory, error) {
	for i, m := range memories {
		if err := valid.Key(m.Key); err != nil {
			return nil, atPosition(err, i, len(memories))
		}
	}
	for i, m := range memories {
		if m.IfAbsent {
			return nil, atPosition(invalid("IfAbsent",
				"{} is set on a memory with a key, which PutMemory stores or updates; omit it"), i, len(memories))
		}
	}
	drafts, err := s.newDrafts(ctx, o, memories)
	if err != nil {
		return nil, err
	}
	for i := range drafts { // hooks may have taken the key
		if err := valid.Key(drafts[i].Key); err != nil {
			return nil, atPosition(err, i, len(memories))
		}
	}
	return s.storeOnce(ctx, drafts, options, (*writing.Writer).Put)
}

// storeOnce stores drafts, without embedding again what the store already has.
func (s *Store) storeOnce(ctx context.Context, drafts []kernel.Draft, options *BatchOptions,
	write func(*writing.Writer, *kernel.Draft) (writing.Result, error)) ([]StoredMemory, error) {
	changed := false // stored content is gone, so it must be embedded after all
	noticing := func(w *writing.Writer, d *kernel.Draft) (writing.Result, error) {
		stored, err := write(w, d)
		changed = errors.Is(err, writing.ErrNotStored)
		return stored, err
	}
	stored, err := s.storeDrafts(ctx, drafts, options, s.findStored, noticing)
	if err != nil && changed {
		for i := range drafts {
			drafts[i].Stored = false
		}
		return s.storeDrafts(ctx, drafts, options, nil, noticing)
	}
	return stored, err
}

// newDrafts checks new memories, and lets the hooks rewrite them.
func (s *Store) newDrafts(ctx context.Context, o *operation, memories []NewMemory) ([]kernel.Draft, error) {
	o.counts(len(memories))
	drafts := make([]kernel.Draft, len(memories))
	for i, m := range memories {
		err := valid.NewContent(m.Content)
		if err == nil {
			drafts[i], err = newDraft(m)
		}
		if err == nil {
			drafts[i], err = o.rewrite(ctx, &m, drafts[i])
		}
		if err == nil && !m.CreatedAt.IsZero() && m.CreatedAt.UnixMicro() > recency.Horizon(s.now()) {
			err = invalid("created_at", "{} is %s, which is in the future; give the time when the memory was made",
				m.CreatedAt.Format(time.RFC3339))
		}
		if err == nil {
			err = drafts[i].Times.CheckExpiry(s.now())
		}
		if err != nil {
			return nil, atPosition(err, i, len(memories))
		}
	}
	return drafts, nil
}

// fewMemories is how many memories one call may store in a transaction shared with others; shortMemories is how many
// bytes of them are embedded without looking up their places first.
const fewMemories, shortMemories = 16, 16 << 10

// embedsAtOnce reports whether embedding the drafts takes less time than looking up their places first. The write
// checks the places itself, and refuses the same drafts.
func (s *Store) embedsAtOnce(drafts []kernel.Draft) bool {
	if !isBuiltin(s.embedder) || len(drafts) > fewMemories {
		return false
	}
	size := 0
	for i := range drafts {
		size += len(drafts[i].Content)
	}
	return size <= shortMemories
}

// storeDrafts stores drafts in one commit, each with write; nil means [writing.Writer.Add]. Before any costly
// embedding, it calls look, unless nil, with each draft and its place.
func (s *Store) storeDrafts(ctx context.Context, drafts []kernel.Draft, options *BatchOptions,
	look func(db.Tx, writing.Destination, *kernel.Draft) error,
	write func(*writing.Writer, *kernel.Draft) (writing.Result, error)) ([]StoredMemory, error) {
	var o BatchOptions
	if options != nil {
		o = *options
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	if err := s.checkWritable(); err != nil {
		return nil, err
	}
	if !s.embedsAtOnce(drafts) {
		if err := s.checkPlaces(ctx, drafts, look); err != nil {
			return nil, err
		}
	}
	warnings, err := s.embedDrafts(ctx, drafts, o.Progress)
	if err != nil {
		return nil, wrap(err)
	}
	similar, err := s.similarTo(ctx, drafts)
	if err != nil {
		return nil, err
	}
	a := &writing.Addition{Drafts: drafts, Write: write, Progress: o.Progress}
	if err := s.storeAddition(ctx, a); err != nil {
		return nil, err
	}
	added := make([]StoredMemory, len(drafts))
	for i, stored := range a.Stored {
		added[i] = storedOf(stored)
		added[i].Similar = slices.DeleteFunc(similar[i],
			func(s SimilarMemory) bool { return s.ID == stored.ID }) // an existing rule, or the memory with this key
		added[i].Similar = added[i].Similar[:min(len(added[i].Similar), drafts[i].Similar)]
		if !stored.Indexed && !drafts[i].WordsOnly {
			added[i].Warnings = append(added[i].Warnings, warnings...)
		}
	}
	o.Progress("store", len(drafts), len(drafts))
	if slices.ContainsFunc(added, func(a StoredMemory) bool { return !a.Indexed }) {
		s.wake(ctx)
	}
	return added, nil
}

// checkPlaces checks, before anything is embedded, that the collections exist, and which of them embed no texts.
func (s *Store) checkPlaces(ctx context.Context, drafts []kernel.Draft,
	look func(db.Tx, writing.Destination, *kernel.Draft) error) error {
	return s.read(ctx, func(tx db.Tx, v viewer) error {
		places := map[[3]string]writing.Destination{}
		for i := range drafts {
			d := &drafts[i]
			name := [3]string{d.Collection, d.ProjectID, d.ProjectName}
			at, known := places[name]
			if !known {
				var err error
				if at, err = s.writing().Destination(tx, v, d); err != nil {
					return atPosition(err, i, len(drafts))
				}
				places[name] = at
			}
			d.WordsOnly = at.Profile != 0 && d.Vector == nil
			if look != nil {
				if err := look(tx, at, d); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// findStored marks a draft whose content the store already has, under its key or, with IfAbsent, at all: it need not be
// embedded again.
func (s *Store) findStored(tx db.Tx, at writing.Destination, d *kernel.Draft) error {
	if at.Collection == 0 || d.Vector != nil || d.Similar > 0 || d.Key == "" && !d.IfAbsent {
		return nil
	}
	key := d.Key
	if d.IfAbsent {
		key = ""
	}
	var err error
	d.Stored, err = kernel.HasStored(tx, at.Collection, at.Project, key, d.Content)
	return err
}

// storeAddition stores an addition in a transaction. Small additions share one with other calls.
func (s *Store) storeAddition(ctx context.Context, a *writing.Addition) error {
	if len(a.Drafts) > fewMemories {
		ctx = db.Yielding(ctx) // others are answered first
	} else if s.batches != nil && a.SharesCommit() && !s.db.InTransaction(ctx) && !s.db.InSnapshot(ctx) {
		return s.storeShared(ctx, a)
	}
	return s.storeAlone(ctx, a)
}

func (s *Store) storeAlone(ctx context.Context, a *writing.Addition) error {
	ahead := func(tx db.Tx, v viewer) {
		if db.Reserve(tx, "memory", len(a.Drafts)) == nil { // otherwise the next statement fails, too
			a.Ahead(tx, v)
		}
	}
	prepares := len(a.Drafts) > fewMemories && s.batches == nil && !s.db.InTransaction(ctx)
	var ready *retrieval.Ready
	defer func() { ready.Discard() }()
	err := s.writeAhead(ctx, ahead, func(tx db.Tx, v viewer) error {
		w, err := s.writing().NewWriter(tx, v)
		if ready.Discard(); err == nil && prepares {
			ready = s.index.Prepare()
			w.Index = ready
		}
		if err == nil {
			err = a.Run(w)
		}
		if err == nil {
			err = w.Flush()
		}
		if err == nil {
			err = ready.Written(tx)
		}
		return err
	})
	if err == nil {
		s.index.Adopt(ready)
	}
	return err
}

// atPosition adds the position of the memory at fault to an error.
func atPosition(err error, i, n int) error { return located(err, "memories", i, n) }

// newDraft checks a memory, but allows content that is only white space.
func newDraft(m NewMemory) (_ kernel.Draft, err error) {
	defer setShownNames[NewMemory](&err, "", m, m.ShownMetadata)
	if m.Similar < 0 || m.Similar > 20 {
		return kernel.Draft{}, invalid("Similar", "{} is %d; expected 0 to 20", m.Similar)
	}
	d, err := kernel.NewDraft(kernel.DraftFields{Collection: m.Collection, Content: m.Content,
		Own: m.Metadata, Metadata: m.ShownMetadata, Embedding: m.Embedding, Key: m.Key,
		EventTime: kernel.MicrosOf(m.EventTime),
		Created:   kernel.MicrosOf(m.CreatedAt), Times: lifespan.Times{Expires: kernel.MicrosOf(m.ExpiresAt),
			From:  kernel.MicrosOf(m.ValidFrom),
			Until: kernel.MicrosOf(m.ValidUntil), Supersedes: m.Supersedes},
		Known: kernel.Attributes{
			EventType: m.EventType, State: m.State, ProjectID: m.ProjectID, ProjectName: m.ProjectName,
			Importance: string(m.Importance), Classification: string(m.Classification), RuleType: string(m.RuleType),
			Tags: m.Tags, Related: m.Related,
		}})
	d.Similar, d.IfAbsent = m.Similar, m.IfAbsent
	if err == nil && d.IfAbsent && (d.Key != "" || d.RuleType != "") {
		err = invalid("IfAbsent", "{} is set on a memory with a {key} or a {rule_type}, which say "+
			"themselves what the memory replaces; omit it")
	}
	if err == nil {
		err = d.CheckRule()
	}
	return d, err
}

// storeShared stores an addition in a transaction that other calls may share.
func (s *Store) storeShared(ctx context.Context, a *writing.Addition) error {
	call := &writing.Shared{Addition: a, Ctx: ctx, View: s.writing(), Key: s.userKey(),
		Known: func() (viewer, bool) {
			user, known := s.users.row(s.userKey())
			if !known {
				return viewer{}, false
			}
			return viewer{User: user, Limited: s.access.Projects != nil}, true
		},
		Viewer:   func(tx db.Tx, other *viewer) (viewer, error) { return s.viewerWithBounds(tx, other, nil) },
		RunAlone: func(ctx context.Context) error { return s.storeAlone(ctx, a) }}
	err := s.batches.Do(ctx, call)
	if err == nil && call.User != 0 {
		s.rememberUser(ctx, call.User)
	}
	return wrap(err)
}

// newContent checks new content and its vector, if any.
func newContent(content string, vector []float32) (*kernel.Draft, error) {
	if err := valid.NewContent(content); err != nil {
		return nil, err
	}
	d := kernel.Draft{Content: content}
	var err error
	if vector != nil {
		if d.Vector, err = kernel.UnitVector(vector, len(vector)); err != nil {
			return nil, invalid("embedding", "{}: %v", err)
		}
	}
	return &d, nil
}

// embedChange embeds new content, unless the change cannot be made or the collection embeds no texts.
func (s *Store) embedChange(ctx context.Context, id string, expected int, content *kernel.Draft) (*kernel.Draft,
	[]string, error) {
	drafts := []kernel.Draft{*content}
	err := s.read(ctx, func(tx db.Tx, v viewer) error {
		m, err := kernel.LoadForWriting(tx, v, id)
		if err == nil {
			err = m.Expect(expected)
		}
		if err != nil {
			return err
		}
		drafts[0].WordsOnly = m.OwnVectors && content.Vector == nil
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	warnings, err := s.embedDrafts(ctx, drafts, func(string, int, int) {})
	return &drafts[0], warnings, err
}
