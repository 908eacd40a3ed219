package souvenir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/deferredcall"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// Hooks are the program's own functions that a store calls around its operations on memories: to refuse them, to
// rewrite their input, and to observe them. A nil function does nothing. [Options.Hooks] takes them.
//
// They apply to every entry point: Go, the tools, MCP, HTTP and the pages. An operation is a call of one of these
// methods:
//
//   - OperationStore: AddMemory, AddMemories, PutMemory, PutMemories, SetRule, SetTodo, SetIdentityMemory,
//     Conversation.Append
//   - OperationUpdate: UpdateMemory, UpdateMemories, RestoreRevision, UpdateTodoSection, CompleteTask
//   - OperationDelete: DeleteMemory, DeleteMemories, DeleteRule, DeleteCollection, DeleteProject,
//     Conversation.Delete, Conversation.Clear
//   - OperationSearch: Search, SearchBatch, SearchAll, GetContext, GetModuleState
//
// AddFile and UpdateFile call BeforeFile only, and [Upkeep.Import] BeforeStore only, with the memories of handmade
// files. Reading by id, listings, the trash, imports of exports and the deletion of users call no hooks: they write
// data that comes from a store, or belong to the operator.
//
// Hooks run in the goroutine of the call, before and after its transactions, never within one, so they may call the
// store. Calls with the context that they receive run without hooks; calls with another context run with them.
// Concurrent calls call hooks concurrently, so these must be safe for concurrent use. A call takes at least as long as
// its hooks. In a [Store.Snapshot], such as a page of the dashboard, Start and Before functions read its state, and
// their writes are ErrReadOnly. A page that needs a model of another program is made more than once, with a search each
// time.
//
// An error of a Before function refuses the operation: nothing is embedded or written, and the caller gets the error.
// An [Error] or the context's error stays unchanged. Any other becomes the Err of an Error of KindForbidden with its
// text, so that errors.Is and errors.As find it; the text reaches the caller, also over HTTP. A panic of Start or a
// Before function is an error of KindInternal. A panic of After is logged: the operation is already done.
type Hooks struct {
	// Start is called first. It returns the context for the operation, which must derive from ctx, for example one with a
	// span; nil means ctx.
	Start func(ctx context.Context, o Operation) context.Context

	// BeforeStore is called with each new memory, one after the other, and may change it. It gets a validated copy: the
	// known keys are in their fields, ShownMetadata is empty, and the caller shares none of it. The result is validated
	// again, embedded and stored. For a rule or a todo, only changes to Content, Tags and Related count; for an
	// identity or a turn, only changes to Content and Metadata.
	BeforeStore func(ctx context.Context, o Operation, m *NewMemory) error

	// BeforeUpdate is called with the update, once even for UpdateMemories, and may change it. As for BeforeStore it is a
	// validated copy; ShownMetadata only has what the other fields cannot express (a custom of null, and keys that
	// Metadata has as well). For UpdateTodoSection, Content is the section's new body; for RestoreRevision, all fields
	// are set; for CompleteTask, which changes one character, u is empty and changes to it do not count.
	BeforeUpdate func(ctx context.Context, o Operation, u *MemoryUpdate) error

	// BeforeFile is called with the texts of a file, by AddFile once all of it was read, and by UpdateFile. It may change
	// them; the result is validated again, and an error refuses the call. No other hook is called for files.
	BeforeFile func(ctx context.Context, o Operation, f *FileTexts) error

	// BeforeDelete is called once, before a deletion. Operation.IDs has the memories, except for DeleteCollection,
	// DeleteProject and Conversation.Clear, and Operation.Erase says whether they are erased.
	BeforeDelete func(ctx context.Context, o Operation) error

	// BeforeSearch may change the query of Search; for SearchBatch it is called with one query after the other. For
	// GetContext and GetModuleState, q has the text, which includes a detected identity, and the project; only changes
	// to Text count.
	BeforeSearch func(ctx context.Context, o Operation, q *Query) error

	// After is called once for each operation, when it has failed, was refused, or is done and durable. In a
	// [Store.Snapshot], such as a page of the dashboard, it is called after the snapshot has ended, and may write. In a
	// [Store.Transaction] it is called after the transaction has ended, with its error if that rolled the operation
	// back. It gets the context that Start returned, which may have ended. Calls with obviously wrong arguments may
	// call no hook at all.
	After func(ctx context.Context, o Operation, r OperationResult)

	// Texts puts texts into the OperationResult. Without it, After gets none, except quotes in an error's message.
	Texts bool
}

// OperationKind is a kind of operation.
type OperationKind string

// The values of [OperationKind].
const (
	OperationStore  OperationKind = "store"
	OperationUpdate OperationKind = "update"
	OperationDelete OperationKind = "delete"
	OperationSearch OperationKind = "search"
)

// Operation is an operation as its [Hooks] see it.
type Operation struct {
	Kind       OperationKind
	Method     string     // the method, such as AddMemories, also for AddMemory
	Access     Access     // of the view
	Project    ProjectRef // that the call names, of rules, todos, deletions and searches; zero: none
	Collection string     // that DeleteCollection names
	// key of the conversation whose method was called
	Conversation string
	IDs          []string // of the memories to be changed or deleted, as far as known beforehand
	Count        int      // memories to be stored, updated or deleted; 0: unknown beforehand
	Erase        bool     // the deletion is to erase, as DeletionOptions.Erase says; Start does not know it yet

	view *Store // nil: it reads no memory
}

// Memory reads the first memory of IDs as it is now, for a Before function. Others may change it before the operation
// does.
func (o Operation) Memory(ctx context.Context) (Memory, error) {
	if o.view == nil || len(o.IDs) == 0 {
		return Memory{}, newError(KindNotFound, "", "the operation names no memory")
	}
	return o.view.GetMemory(ctx, o.IDs[0])
}

// OperationResult is how an operation ended.
type OperationResult struct {
	Err      error // nil: done. Its message may quote the caller's input.
	Duration time.Duration
	Count    int      // memories stored, changed, deleted, or returned by a search
	IDs      []string // their ids; none for deletions, and for updates of many, whose ids are in the Operation

	Query    string   // the search text, a line for each query of a batch; only with Hooks.Texts
	Memories []Memory // that were stored, changed or found; only with Hooks.Texts
}

// operation is a running operation. On nil, which stands for a store without hooks, its methods change nothing.
type operation struct {
	Operation
	hooks []Hooks
	log   *slog.Logger
	texts []string // that are searched for
	view  *Store
}

// withoutHooks is the key that marks a hook's context: operations on the store with it call no hooks.
type withoutHooks struct{ store *shared }

// hooked runs an operation with the store's hooks around it.
func hooked[T any](ctx context.Context, s *Store, kind OperationKind, method string,
	run func(ctx context.Context, o *operation) (T, error)) (result T, err error) {
	if len(s.options.Hooks) == 0 || ctx.Value(withoutHooks{s.shared}) != nil {
		return run(ctx, nil)
	}
	o := &operation{hooks: s.options.Hooks, log: s.log,
		Operation: Operation{Kind: kind, Method: method, Access: s.Access()}, view: s}
	ctx = context.WithValue(ctx, withoutHooks{s.shared}, true)
	began := time.Now()
	started := 0
	done := false
	defer func() {
		r := OperationResult{Err: err, Duration: time.Since(began)}
		if !done { // run panicked; the panic propagates
			r.Err = newError(KindInternal, "", "souvenir: the operation panicked")
		} else if err == nil {
			r.Count, r.Memories = o.outcome(result)
		} else if errors.Is(err, deferredcall.ErrLater) { // this is no failure: it will be repeated
			r.Err = nil
		}
		if !s.db.InSnapshot(ctx) && (kind == OperationSearch || r.Err != nil || !s.db.InTransaction(ctx)) {
			o.after(ctx, started, r)
			return
		}
		s.db.AtEnd(ctx, func(undone error) {
			if undone != nil {
				r = OperationResult{Err: wrap(undone), Duration: r.Duration}
			}
			o.after(s.db.Outside(ctx), started, r)
		})
	}()
	for _, h := range o.hooks {
		if h.Start != nil {
			err = o.guarded(ctx, "Start", func() error {
				if next := h.Start(ctx, o.copied()); next != nil {
					ctx = next
				}
				return nil
			})
			if err != nil {
				done = true
				return result, err
			}
		}
		started++
	}
	result, err = run(ctx, o)
	done = true
	return result, err
}

// hookedDelete runs a deletion with the store's hooks around it. On a full disk it may use the reserve.
func (s *Store) hookedDelete(ctx context.Context, method string, run func(context.Context, *operation) error) error {
	_, err := hooked(ctx, s, OperationDelete, method, func(ctx context.Context, o *operation) (deletion, error) {
		err := run(db.Freeing(ctx), o)
		if o == nil {
			return deletion{}, err
		}
		return deletion{o.Count}, err
	})
	return err
}

// after calls After on the hooks that started, in reverse order.
func (o *operation) after(ctx context.Context, started int, r OperationResult) {
	for _, m := range r.Memories {
		if m.ID != "" {
			r.IDs = append(r.IDs, m.ID)
		}
	}
	r.Query = strings.Join(o.texts, "\n")
	for _, h := range slices.Backward(o.hooks[:started]) {
		if h.After == nil {
			continue
		}
		given := r
		given.IDs, given.Memories = slices.Clone(r.IDs), nil
		if h.Texts {
			given.Memories = slices.Clone(r.Memories)
		} else {
			given.Query = ""
		}
		_ = o.guarded(ctx, "After", func() error { h.After(ctx, o.copied(), given); return nil })
	}
}

// copied returns the operation for a hook, which may keep or change it.
func (o *operation) copied() Operation {
	c := o.Operation
	c.IDs, c.Access.Projects = slices.Clone(c.IDs), slices.Clone(c.Access.Projects)
	return c
}

// guarded calls a hook and turns a panic into an error. The value of a panic may contain a text, so only runtime errors
// are logged with their message.
func (o *operation) guarded(ctx context.Context, name string, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			cause := fmt.Errorf("a panic with a %T", p)
			if known, ok := p.(runtime.Error); ok {
				cause = known
			}
			o.log.ErrorContext(ctx, "a hook panicked", "hook", name, "method", o.Method, "error", cause,
				"stack", string(debug.Stack()))
			err = &Error{Kind: KindInternal, Message: "souvenir: the hook " + name + " panicked", Err: cause}
		}
	}()
	err = call()
	if typed, ok := err.(*Error); ok && typed == nil { //nolint:errorlint // of this type itself: errors.As would use it
		return &Error{Kind: KindInternal, Message: "souvenir: the hook " + name +
			" returned a nil *souvenir.Error as its error; return nil instead"}
	}
	return err
}

// before calls one Before function of each hook, in order, until one refuses.
func (o *operation) before(ctx context.Context, name string, call func(h Hooks, given Operation) error) error {
	if o == nil {
		return nil
	}
	for _, h := range o.hooks {
		given := o.copied()
		given.view = o.view
		if err := o.guarded(ctx, name, func() error { return call(h, given) }); err != nil {
			return refused(err)
		}
	}
	return nil
}

// refused gives an error of a hook a kind, unless it has one.
func refused(err error) error {
	var known *Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{Kind: KindForbidden, Message: err.Error(), Err: err}
}

// names notes the ids and the number of the operation's memories.
func (o *operation) names(ids ...string) {
	if o != nil {
		o.IDs, o.Count = ids, len(ids)
	}
}

// counts notes how many memories are given.
func (o *operation) counts(n int) {
	if o != nil {
		o.Count = n
	}
}

// in notes the project that the operation names.
func (o *operation) in(project ProjectRef) {
	if o != nil {
		o.Project = project
	}
}

// rewrite lets the hooks rewrite a new memory with the draft d, and returns the resulting draft.
func (o *operation) rewrite(ctx context.Context, m *NewMemory, d kernel.Draft) (kernel.Draft, error) {
	if o == nil {
		return d, nil
	}
	given := m.Content
	*m = m.rewritable(d)
	if err := o.beforeStore(ctx, m); err != nil {
		return d, err
	}
	if m.Content != given {
		if err := valid.NewContent(m.Content); err != nil {
			return d, err
		}
	}
	return newDraft(*m)
}

func (o *operation) beforeStore(ctx context.Context, m *NewMemory) error {
	return o.before(ctx, "BeforeStore", func(h Hooks, given Operation) error {
		if h.BeforeStore == nil {
			return nil
		}
		return h.BeforeStore(ctx, given, m)
	})
}

// rewritable returns the memory as the hooks get it: d is the same memory, checked.
func (m NewMemory) rewritable(d kernel.Draft) NewMemory {
	m.Collection = d.Collection
	m.EventType, m.State, m.ProjectID, m.ProjectName = d.EventType, d.State, d.ProjectID, d.ProjectName
	m.Importance, m.Classification, m.RuleType = Importance(d.Importance), Classification(d.Classification),
		RuleType(d.RuleType)
	m.Tags, m.Related, m.Metadata, m.ShownMetadata = slices.Clone(d.Tags), slices.Clone(d.Related), d.Own, nil
	m.Embedding = slices.Clone(m.Embedding)
	return m
}

// update lets the hooks rewrite a valid change.
func (o *operation) update(ctx context.Context, u *MemoryUpdate) error {
	return o.before(ctx, "BeforeUpdate", func(h Hooks, given Operation) error {
		if h.BeforeUpdate == nil {
			return nil
		}
		return h.BeforeUpdate(ctx, given, u)
	})
}

// rewriteUpdate lets the hooks rewrite a change with the patch p, and returns the resulting patch.
func (o *operation) rewriteUpdate(ctx context.Context, u *MemoryUpdate, p attributesPatch) (attributesPatch, error) {
	if o == nil {
		return p, nil
	}
	if u.Content != nil {
		if err := valid.NewContent(*u.Content); err != nil {
			return p, err
		}
	}
	given, err := u.rewritable(p)
	if err != nil {
		return p, err
	}
	if err := o.update(ctx, &given); err != nil {
		return p, err
	}
	*u = given
	return u.patch()
}

// rewritable returns the update as the hooks get it: p is its patch. Each key is in one place, except keys that only
// two patches one after the other can express.
func (u MemoryUpdate) rewritable(p attributesPatch) (MemoryUpdate, error) {
	a, err := kernel.Attributes{}.Patch(p.shown)
	if err != nil {
		return u, err
	}
	u.setKnown(a, p.shown)
	u.Metadata, u.ShownMetadata = kernel.FoldPatch(p.shown, p.own)
	u.Embedding = slices.Clone(u.Embedding)
	if u.Content != nil {
		u.Content = new(*u.Content)
	}
	return u, nil
}

// setKnown sets the fields of the known keys that a patch has.
func (u *MemoryUpdate) setKnown(a kernel.Attributes, patch map[string]any) {
	u.EventType, u.State, u.ProjectID, u.ProjectName, u.Importance, u.Classification, u.RuleType, u.Tags, u.Related =
		nil, nil, nil, nil, nil, nil, nil, nil, nil
	for key := range patch {
		switch key {
		case "event_type":
			u.EventType = new(a.EventType)
		case "state":
			u.State = new(a.State)
		case "project_id":
			u.ProjectID = new(a.ProjectID)
		case "project_name":
			u.ProjectName = new(a.ProjectName)
		case "importance":
			u.Importance = new(Importance(a.Importance))
		case "classification":
			u.Classification = new(Classification(a.Classification))
		case "rule_type":
			u.RuleType = new(RuleType(a.RuleType))
		case "tags":
			u.Tags = new(slices.Clone(a.Tags))
		case "related_memory_ids":
			u.Related = new(slices.Clone(a.Related))
		}
	}
}

// delete asks the hooks whether the memories may be deleted.
func (o *operation) delete(ctx context.Context, options *DeletionOptions) error {
	if o != nil {
		o.Erase = options.orDefault().Erase
	}
	return o.before(ctx, "BeforeDelete", func(h Hooks, given Operation) error {
		if h.BeforeDelete == nil {
			return nil
		}
		return h.BeforeDelete(ctx, given)
	})
}

// search lets the hooks rewrite a valid query. The result must be checked again.
func (o *operation) search(ctx context.Context, q *Query) error {
	if o == nil {
		return nil
	}
	o.Project = ProjectRef{ID: q.ProjectID, Name: q.ProjectName}
	q.Vector, q.Collections, q.Tags = slices.Clone(q.Vector), slices.Clone(q.Collections), slices.Clone(q.Tags)
	q.Keys = slices.Clone(q.Keys)
	err := o.before(ctx, "BeforeSearch", func(h Hooks, given Operation) error {
		if h.BeforeSearch == nil {
			return nil
		}
		return h.BeforeSearch(ctx, given, q)
	})
	o.texts = append(o.texts, q.Text)
	return err
}

// searchText lets the hooks rewrite a method's search text, and checks the result.
func (o *operation) searchText(ctx context.Context, project ProjectRef, given string) (string, error) {
	if o == nil {
		return given, nil
	}
	q := Query{Text: given, ProjectID: project.ID, ProjectName: project.Name}
	if err := o.search(ctx, &q); err != nil {
		return "", err
	}
	text := Query{Text: q.Text}
	return q.Text, text.check()
}

// outcome returns the number and the ids of an operation's memories.
func (o *operation) outcome(result any) (count int, memories []Memory) {
	switch r := result.(type) {
	case StoredMemory:
		memories = []Memory{r.Memory}
	case []StoredMemory:
		for _, m := range r {
			memories = append(memories, m.Memory)
		}
	case StoredRule:
		memories = []Memory{r.Memory}
	case StoredTodo:
		memories = []Memory{r.Memory}
	case CompletedTask:
		memories = []Memory{r.Memory}
	case Results:
		for _, h := range r.Hits {
			memories = append(memories, h.Memory)
		}
	case page: // of SearchAll, whose memories are read later
		return len(r.hits), nil
	case []Results:
		for _, page := range r {
			for _, h := range page.Hits {
				memories = append(memories, h.Memory)
			}
		}
	case Context:
		for _, m := range r.Related {
			memories = append(memories, m.Memory)
		}
	case ModuleState:
		for _, m := range r.Memories {
			memories = append(memories, m.Memory)
		}
	case []Turn:
		for _, t := range r {
			memories = append(memories, Memory{ID: t.ID, Content: t.Content, Metadata: t.Metadata})
		}
	case BulkReport:
		return r.Changed, nil
	case deletion:
		return r.count, nil
	}
	return len(memories), memories
}

// deletion is the result of a deletion.
type deletion struct{ count int }

// FileTexts are the texts of a file that is stored or changed, as [Hooks].BeforeFile sees them. In a change, those that
// stay are empty, and remain so.
type FileTexts struct {
	Filename    string
	MIMEType    string // of a new file, as detected; changes to it do not count
	Description string
	Category    string
	Tags        []string
	Content     []byte // of a new text file of less than 4 MiB, complete; nil for others
	LongText    bool   // it is a larger new text file, whose content passes in parts

	// Other is another new file, complete, to look at: it is not visible before BeforeFile has returned. An error of its
	// Content fails AddFile.
	Other *Document
}

// beforeFile calls BeforeFile of each hook, in order, until one refuses. called is false if no hook has it.
func (s *Store) beforeFile(ctx context.Context, kind OperationKind, method string, f *FileTexts) (called bool,
	err error) {
	none := !slices.ContainsFunc(s.options.Hooks, func(h Hooks) bool { return h.BeforeFile != nil })
	if none || ctx.Value(withoutHooks{s.shared}) != nil {
		return false, nil
	}
	ctx = context.WithValue(ctx, withoutHooks{s.shared}, true)
	o := &operation{hooks: s.options.Hooks, log: s.log,
		Operation: Operation{Kind: kind, Method: method, Access: s.Access()}}
	return true, o.before(ctx, "BeforeFile", func(h Hooks, given Operation) error {
		if h.BeforeFile == nil {
			return nil
		}
		return h.BeforeFile(ctx, given, f)
	})
}

// rewriteFileUpdate lets the hooks rewrite the change of a file.
func (s *Store) rewriteFileUpdate(ctx context.Context, u *FileUpdate) error {
	t := FileTexts{Tags: slices.Clone(u.Tags)}
	fields := map[**string]*string{&u.Filename: &t.Filename, &u.Description: &t.Description, &u.Category: &t.Category}
	for given, text := range fields {
		if *given != nil {
			*text = **given
		}
	}
	called, err := s.beforeFile(ctx, OperationUpdate, "UpdateFile", &t)
	if err != nil || !called {
		return err
	}
	for given, text := range fields {
		if *given != nil {
			*given = text
		}
	}
	if u.Tags != nil {
		u.Tags = append([]string{}, t.Tags...)
	}
	return u.check()
}
