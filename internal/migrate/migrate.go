// Package migrate imports the data of other memory programs and chat services into a store. Each source has its own Go
// file, with a function that yields items.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// Item is a memory of another program, or a turn of one of its conversations.
type Item struct {
	// Memory has a Key that is the same in each run.
	Memory souvenir.NewMemory

	// Links are keys of other items, to which the memory is linked.
	Links []string

	// Conversation is the key of the conversation of Turn; empty for a memory. A conversation's turns follow each other.
	Conversation string
	Turn         souvenir.Turn

	// Skipped is the reason why the item named by Memory.Key cannot be imported; empty for all others.
	Skipped string
}

// source reads the items at a path. An error ends the import.
type source func(ctx context.Context, path string) iter.Seq2[Item, error]

var sources = map[string]source{
	"basic-memory": basicMemory, "chatgpt": chatGPT, "chromem": chromem, "claude": claude,
	"mcp-memory-service": mcpMemoryService, "mem0": mem0, "server-memory": serverMemory,
}

// Sources returns the names of the programs that can be read.
func Sources() []string { return slices.Sorted(maps.Keys(sources)) }

// Options change how [Import] works. Nil means the zero value.
type Options struct {
	Collection  string // of memories; empty means the default one. Turns are in the collection of conversations.
	ProjectName string // of memories and turns; empty means none
	DryRun      bool   // read everything, and store nothing

	// Treat treats the secrets in a memory, or in the content and metadata of a turn, and returns the names of their
	// rules. After an error the item is skipped. Nil treats none.
	Treat func(m *souvenir.NewMemory) (rules []string, err error)

	// Progress receives the stage "import", counted in items, with the total 0. Nil means no progress reports.
	Progress souvenir.Progress
}

// Report is the result of an import or, with DryRun, the most that an import would do.
type Report struct {
	Source        string `json:"source"`
	DryRun        bool   `json:"dry_run"`
	Memories      int    `json:"memories"` // read
	Added         int    `json:"added"`
	Updated       int    `json:"updated"`
	Unchanged     int    `json:"unchanged"`
	Links         int    `json:"links"`
	MissingLinks  int    `json:"missing_links"` // to missing items
	Conversations int    `json:"conversations"`
	Turns         int    `json:"turns"`       // read
	TurnsAdded    int    `json:"turns_added"` // the others already existed
	Skipped       int    `json:"skipped"`

	// Secrets counts, by rule, the memories and turns with a possible secret, also skipped ones.
	Secrets map[string]int `json:"secrets"`

	Reasons []string `json:"reasons"` // for the first 100 skipped items
}

const (
	batchItems = 500     // of a transaction
	batchBytes = 4 << 20 // of their contents
	maxReasons = 100
)

// Import imports another program's data at a path into a store. Memories have keys and turns are in conversations, so a
// second run only applies changes in the source. After an error, items that were already stored stay. Items that the
// store refuses are skipped, and the report says why.
func Import(ctx context.Context, store *souvenir.Store, from, path string, options *Options) (Report, error) {
	var o Options
	if options != nil {
		o = *options
	}
	read, known := sources[from]
	if !known {
		return Report{}, fmt.Errorf("%q is not a known source; expected one of %s", from, strings.Join(Sources(), ", "))
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) {}
	}
	r := &run{ctx: ctx, store: store, options: o, ids: map[string]string{}, taken: map[string]bool{},
		report: Report{Source: from, DryRun: o.DryRun, Secrets: map[string]int{}, Reasons: []string{}}}
	err := r.readAll(read, path, r.take)
	if err == nil && len(r.late) > 0 { // links to memories that were stored later
		r.linking = true
		clear(r.taken)
		if r.kept.full {
			err = r.readAll(read, path, r.takeLinked)
		} else {
			err = r.readAll(r.kept.all, path, r.takeLinked)
		}
	}
	r.report.MissingLinks = len(r.missing)
	if err != nil {
		return r.report, fmt.Errorf("importing %s: %w", from, err)
	}
	return r.report, nil
}

// kept holds entries that are needed again, up to a limit.
type kept[T any] struct {
	items []T
	bytes int
	full  bool // the limit was exceeded; nothing is kept
}

// keptItem is the approximate size of an item besides its text, in bytes.
const keptItem = 1 << 10

var mostKept = 64 << 20 // bytes; a variable for tests

func (k *kept[T]) add(item T, bytes int) {
	if k.bytes += bytes + keptItem; k.bytes > mostKept {
		k.items, k.full = nil, true
	}
	if !k.full {
		k.items = append(k.items, item)
	}
}

// all yields the kept entries, as a source does.
func (k *kept[T]) all(context.Context, string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range k.items {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// run is a running import.
type run struct {
	ctx     context.Context
	store   *souvenir.Store
	options Options
	report  Report

	batch []Item
	bytes int

	links   bool               // some memory has had links
	linking bool               // the second pass, for links
	taken   map[string]bool    // keys of the memories of this pass
	late    map[string]bool    // keys of the memories with links that could not be resolved yet
	kept    kept[Item]         // these memories
	ids     map[string]string  // by key, of memories that are linked or were stored since the first link
	missing map[[2]string]bool // links to missing memories
	current string             // the key of the current conversation
}

// readAll passes all items to take, and flushes the batch at the end.
func (r *run) readAll(read source, path string, take func(Item) error) error {
	n := 0
	for item, err := range read(r.ctx, path) {
		if err == nil {
			err = r.ctx.Err()
		}
		if err == nil {
			err = take(item)
		}
		if err != nil {
			return err
		}
		n++
		r.options.Progress("import", n, 0)
	}
	return r.flush()
}

// take counts an item and adds it to the batch.
func (r *run) take(item Item) error {
	switch {
	case item.Skipped != "":
		r.skip(item.Memory.Key, item.Skipped)
		return nil
	case item.Conversation != "":
		r.report.Turns++
		if item.Conversation != r.current {
			if err := r.flush(); err != nil {
				return err
			}
			r.current = item.Conversation
			r.report.Conversations++
		}
	default:
		r.report.Memories++
		if r.taken[item.Memory.Key] { // the item would replace the first one
			r.skip(item.Memory.Key, "an earlier item has the same key")
			return nil
		}
		r.taken[item.Memory.Key] = true
	}
	if err := r.treat(&item); err != nil {
		r.skip(item.Memory.Key+item.Turn.Key, err.Error())
		return nil
	}
	return r.add(item)
}

// treat treats the secrets in an item, and counts them in the first pass.
func (r *run) treat(item *Item) error {
	if r.options.Treat == nil {
		return nil
	}
	m := &item.Memory
	if item.Conversation != "" {
		m = &souvenir.NewMemory{Content: item.Turn.Content, Metadata: item.Turn.Metadata}
	}
	rules, err := r.options.Treat(m)
	if item.Conversation != "" {
		item.Turn.Content, item.Turn.Metadata = m.Content, m.Metadata
	}
	if !r.linking {
		for _, rule := range rules {
			r.report.Secrets[rule]++
		}
	}
	return err
}

// takeLinked takes only memories with links that the first pass could not resolve.
func (r *run) takeLinked(item Item) error {
	if item.Skipped != "" || item.Conversation != "" || !r.late[item.Memory.Key] ||
		r.taken[item.Memory.Key] {
		return nil
	}
	r.taken[item.Memory.Key] = true
	if err := r.treat(&item); err != nil {
		return nil //nolint:nilerr // the first pass has reported it
	}
	return r.add(item)
}

func (r *run) add(item Item) error {
	if r.options.DryRun {
		return nil
	}
	item.Memory.Collection, item.Memory.ProjectName = r.options.Collection, r.options.ProjectName
	if n := len(r.batch); n > 0 && (r.batch[n-1].Conversation != item.Conversation || n == batchItems ||
		r.bytes > batchBytes) {
		if err := r.flush(); err != nil {
			return err
		}
	}
	r.batch, r.bytes = append(r.batch, item), r.bytes+len(item.Memory.Content)+len(item.Turn.Content)
	return nil
}

func (r *run) skip(key, why string) {
	r.report.Skipped++
	if len(r.report.Reasons) < maxReasons {
		r.report.Reasons = append(r.report.Reasons, fmt.Sprintf("%s: %s", key, why))
	}
}

// flush stores the batch. If the store refuses one of the items, it stores them one by one.
func (r *run) flush() error {
	batch := r.batch
	r.batch, r.bytes = nil, 0
	if len(batch) == 0 {
		return nil
	}
	store := r.putMemories
	if batch[0].Conversation != "" {
		store = r.appendTurns
	}
	err := store(batch)
	if !refused(err) {
		return err
	}
	for _, item := range batch {
		err := store([]Item{item})
		switch {
		case refused(err):
			r.skip(item.Memory.Key+item.Turn.Key, err.Error())
		case err != nil:
			return err
		}
	}
	return nil
}

// refused reports whether an error is due to the item, not to the store.
func refused(err error) bool {
	return errors.Is(err, souvenir.ErrInvalid) || errors.Is(err, souvenir.ErrTooLarge)
}

func (r *run) putMemories(batch []Item) error {
	if err := r.findLinked(batch); err != nil {
		return err
	}
	memories := make([]souvenir.NewMemory, len(batch))
	for i, item := range batch {
		memories[i] = item.Memory
		memories[i].Related = r.related(item)
	}
	stored, err := r.store.PutMemories(r.ctx, memories, nil)
	if err != nil {
		return err
	}
	for _, m := range stored {
		if r.links {
			r.ids[m.Key] = m.ID
		}
		if r.linking {
			continue // it was counted in the first pass
		}
		switch m.Effect {
		case souvenir.EffectAdded:
			r.report.Added++
		case souvenir.EffectUpdated:
			r.report.Updated++
		default:
			r.report.Unchanged++
		}
	}
	return nil
}

// findLinked looks up the unknown ids of memories that the items link to.
func (r *run) findLinked(batch []Item) error {
	unknown := map[string]bool{}
	for _, item := range batch {
		for _, key := range item.Links {
			r.links = true
			if r.ids[key] == "" {
				unknown[key] = true
			}
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return r.store.Snapshot(r.ctx, func(ctx context.Context) error {
		for key := range unknown {
			m, err := r.store.GetMemoryByKey(ctx, souvenir.MemoryKey{Collection: r.options.Collection,
				ProjectName: r.options.ProjectName, Key: key})
			if err != nil && !errors.Is(err, souvenir.ErrNotFound) {
				return err
			}
			r.ids[key] = m.ID
		}
		return nil
	})
}

// related returns the ids that an item's links lead to. In the first pass it records the items with unresolved links.
func (r *run) related(item Item) []string {
	const most = 256 // of one memory
	var ids []string
	for _, key := range item.Links {
		switch id := r.ids[key]; {
		case id != "" && !slices.Contains(ids, id) && len(ids) < most:
			ids = append(ids, id)
		case id != "":
		case r.linking:
			if r.missing == nil {
				r.missing = map[[2]string]bool{}
			}
			r.missing[[2]string{item.Memory.Key, key}] = true
		default:
			if r.late == nil {
				r.late = map[string]bool{}
			}
			r.late[item.Memory.Key] = true
		}
	}
	if !r.linking && r.late[item.Memory.Key] {
		r.kept.add(item, len(item.Memory.Content))
	}
	if r.linking || !r.late[item.Memory.Key] {
		r.report.Links += len(ids)
	}
	return ids
}

// appendTurns appends turns of one conversation.
func (r *run) appendTurns(batch []Item) error {
	c := r.store.Conversation(batch[0].Conversation, souvenir.ConversationPlace{ProjectName: r.options.ProjectName})
	before, err := turnsOf(r.ctx, c)
	if err != nil {
		return err
	}
	all := make([]souvenir.Turn, len(batch))
	for i, item := range batch {
		all[i] = item.Turn
	}
	if _, err := c.Append(r.ctx, all...); err != nil {
		return err
	}
	after, err := turnsOf(r.ctx, c)
	r.report.TurnsAdded += after - before
	return err
}

// turnsOf returns how many turns a conversation has.
func turnsOf(ctx context.Context, c *souvenir.Conversation) (int, error) {
	info, err := c.Info(ctx)
	if errors.Is(err, souvenir.ErrNotFound) {
		return 0, nil
	}
	return info.Turns, err
}

// tagsOf returns texts as tags: distinct, not empty, and within a memory's limits of number and length.
func tagsOf(texts ...string) []string {
	const most, longest = 64, 128 // characters
	var tags []string
	for _, text := range texts {
		text = strings.TrimSpace(text)
		if runes := []rune(text); len(runes) > longest {
			text = strings.TrimSpace(string(runes[:longest]))
		}
		if text != "" && !slices.Contains(tags, text) && len(tags) < most {
			tags = append(tags, text)
		}
	}
	return tags
}
