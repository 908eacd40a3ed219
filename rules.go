package souvenir

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/trash"
	"github.com/souvenir-ai/souvenir/internal/valid"
	"github.com/souvenir-ai/souvenir/internal/writing"
)

// RuleType says which of a project's rules a memory of event type project-rule is.
type RuleType string

// The values of [RuleType]. The empty value means that the memory is not a rule.
const (
	RuleDo   RuleType = "do"
	RuleDont RuleType = "dont"
	RuleTodo RuleType = "todo"
)

// EventProjectRule is the event type of project rules, the only one that has a [RuleType].
const EventProjectRule = "project-rule"

// A rule is a memory of event type project-rule. A project has at most one of each RuleType; outside all projects each
// user has at most one general do and dont. Storing again changes that memory in place, and its history records the
// earlier versions. Every write that makes a memory a rule, or moves a rule, looks for another one in its own
// transaction.

// NewRule describes a rule to store for a project or a user.
type NewRule struct {
	// the project; an unknown one is created. With neither, the rule is general: for all of the user's work.
	ProjectID   string
	ProjectName string   // the project by name
	Type        RuleType // RuleDo or RuleDont; SetTodo stores the todo
	Content     string   // Markdown, 1 byte to 1 MiB

	Tags    []string // nil keeps the rule's tags; an empty list removes them
	Related []string // ids of visible memories to link to; nil and empty as with Tags

	// ExpectedRevision makes the call fail with ErrConflict when the rule has another revision. Zero means any.
	ExpectedRevision int
}

// StoredRule is a rule as stored.
type StoredRule struct {
	StoredMemory
	Created bool // no such rule existed before
}

// MarshalJSON returns the form of the interfaces: id, created, updated, revision, indexed, memory, project_created and
// warnings.
func (r StoredRule) MarshalJSON() ([]byte, error) { return json.Marshal(r.json()) }

func (r StoredRule) json() storedRuleJSON {
	return storedRuleJSON{r.ID, r.Created, !r.Created, r.Revision, nil, r.Indexed, r.Memory, r.ProjectCreated, r.Warnings,
		r.Effect}
}

// UnmarshalJSON reads the output of MarshalJSON.
func (r *StoredRule) UnmarshalJSON(data []byte) error {
	var given storedRuleJSON
	if err := json.Unmarshal(data, &given); err != nil {
		return err
	}
	*r = StoredRule{StoredMemory{Memory: given.Memory, Indexed: given.Indexed, Warnings: given.Warnings,
		ProjectCreated: given.ProjectCreated, Effect: given.Effect}, given.Created}
	return nil
}

// storedRuleJSON is the JSON form of a stored rule or todo.
type storedRuleJSON struct {
	ID             string        `json:"id"`
	Created        bool          `json:"created"`
	Updated        bool          `json:"updated"`
	Revision       int           `json:"revision"`
	Progress       *TodoProgress `json:"progress,omitempty"` // of a todo
	Indexed        bool          `json:"indexed"`
	Memory         Memory        `json:"memory"`
	ProjectCreated bool          `json:"project_created,omitempty"`
	Warnings       []string      `json:"warnings,omitempty"`
	Effect         Effect        `json:"effect,omitempty"`
}

// Rules are the rules of a project, or the general ones of a user. Nil means none.
type Rules struct {
	Do       *Memory  `json:"do"`
	Dont     *Memory  `json:"dont"`
	Todo     *Memory  `json:"todo"` // of projects only
	Warnings []string `json:"warnings,omitempty"`
}

// SetRule stores a rule. It replaces the project's rule of this type or, without a project, the user's. A view that is
// limited to projects stores no general rules (ErrForbidden) and sees none. The memory keeps its id and gets a new
// revision. A new memory goes into the collection default. Storing the same content again makes no revision.
func (s *Store) SetRule(ctx context.Context, r NewRule) (_ StoredRule, err error) {
	defer setGoNames[NewRule](&err)
	if r.Type == RuleTodo {
		return StoredRule{}, invalid("rule_type", "{} is %q, which SetTodo stores; SetRule takes %s", r.Type,
			oneOf(kernel.RuleTypes[:2]))
	}
	if err := checkRuleType(r.Type); err != nil {
		return StoredRule{}, err
	}
	state, err := kernel.NewRuleText(r.Content, r.Tags, r.Related)
	if err != nil {
		return StoredRule{}, err
	}
	project := ProjectRef{ID: r.ProjectID, Name: r.ProjectName}
	if err := s.writing().CheckGeneralRule(project.ID, project.Name); err != nil {
		return StoredRule{}, err
	}
	return hooked(ctx, s, OperationStore, "SetRule", func(ctx context.Context, o *operation) (_ StoredRule, err error) {
		defer setGoNames[NewRule](&err)
		state, err := o.rule(ctx, project, r.Type, state)
		if err != nil {
			return StoredRule{}, err
		}
		return s.editRule(ctx, ruleEdit{
			project: project, ruleType: r.Type, expected: r.ExpectedRevision, next: state.Over,
		})
	})
}

func checkRuleType(t RuleType) error {
	if t == "" {
		return invalid("rule_type", "{} is empty; expected %s", oneOf(kernel.RuleTypes))
	}
	return valid.Enum("rule_type", string(t), kernel.RuleTypes)
}

// GetRule returns a project's rule of a type, or for the zero ProjectRef the user's general one. ErrNotFound means that
// the rule does not exist, or that the project is not visible.
func (s *Store) GetRule(ctx context.Context, project ProjectRef, ruleType RuleType) (_ Memory, err error) {
	defer setGoNames[ProjectRef](&err, "rule_type", "ruleType")
	if err := cmp.Or(checkRuleType(ruleType), valid.Project(project.ID, project.Name)); err != nil {
		return Memory{}, err
	}
	var m Memory
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		present, err := s.presentRules(tx, v, project, ruleType)
		if err == nil && len(present) == 0 {
			err = s.noRule(project, ruleType)
		}
		if err == nil {
			m = memoryOf(present[0])
		}
		return err
	})
	return m, err
}

// Rules returns the rules of a project, or for the zero ProjectRef the user's general ones, in any state. An unknown
// project has none, which is not an error.
func (s *Store) Rules(ctx context.Context, project ProjectRef) (_ Rules, err error) {
	defer setGoNames[ProjectRef](&err)
	if err := valid.Project(project.ID, project.Name); err != nil {
		return Rules{}, err
	}
	var r Rules
	err = s.read(ctx, func(tx db.Tx, v viewer) (err error) {
		r, err = s.rules(tx, v, project)
		if project == (ProjectRef{}) && v.Limited {
			r.Warnings = append(r.Warnings,
				"general rules are not visible here: this view is limited to projects; give one of them")
		}
		return err
	})
	return r, err
}

func (s *Store) rules(tx db.Tx, v viewer, project ProjectRef) (Rules, error) {
	var r Rules
	if project != (ProjectRef{}) {
		p, err := naming.Find(tx, v, project.ID, project.Name)
		if err != nil {
			return Rules{}, err
		}
		r.Warnings = p.Notes()
	}
	for _, rule := range []struct {
		ruleType RuleType
		into     **Memory
	}{{RuleDo, &r.Do}, {RuleDont, &r.Dont}, {RuleTodo, &r.Todo}} {
		present, err := s.presentRules(tx, v, project, rule.ruleType)
		if err != nil {
			return Rules{}, err
		}
		if len(present) > 0 {
			m := memoryOf(present[0])
			*rule.into = &m
		}
		r.Warnings = append(r.Warnings, writing.Superfluous(present)...)
	}
	return r, nil
}

// DeleteRule deletes a project's rule of a type, or for the zero ProjectRef the user's general one, as DeleteMemory
// does. ErrNotFound means that no such rule exists.
func (s *Store) DeleteRule(ctx context.Context, project ProjectRef, ruleType RuleType) (err error) {
	defer setGoNames[ProjectRef](&err, "rule_type", "ruleType")
	if err := cmp.Or(checkRuleType(ruleType), valid.Project(project.ID, project.Name)); err != nil {
		return err
	}
	if err := s.writing().CheckGeneralRule(project.ID, project.Name); err != nil {
		return err
	}
	return s.hookedDelete(ctx, "DeleteRule", func(ctx context.Context, o *operation) (err error) {
		defer setGoNames[ProjectRef](&err, "rule_type", "ruleType")
		if o != nil {
			o.in(project)
			if m, err := s.GetRule(ctx, project, ruleType); err == nil {
				o.names(m.ID)
			}
			if err := o.delete(ctx, nil); err != nil {
				return err
			}
		}
		return s.deleteRule(ctx, project, ruleType)
	})
}

func (s *Store) deleteRule(ctx context.Context, project ProjectRef, ruleType RuleType) error {
	return s.write(ctx, func(tx db.Tx, v viewer) error {
		present, err := s.presentRules(tx, v, project, ruleType)
		if err == nil && len(present) == 0 {
			err = s.noRule(project, ruleType)
		}
		if err != nil {
			return err
		}
		for _, m := range present { // superfluous ones, too: otherwise they would take its place
			if !m.Writable {
				return forbiddenRule(m)
			}
			if err := s.newTrasher(tx, v, trash.FullPortion()).Memory(trashed(m)); err != nil {
				return err
			}
		}
		return nil
	})
}

func forbiddenRule(m kernel.Memory) error {
	return newError(KindForbidden, "project_id", "project %s is shared with this user read-only",
		show(cmp.Or(m.ProjectName, m.ProjectID)))
}

// presentRules returns a project's rules of a type, for reading: first the valid one, then superfluous ones. Without a
// project it returns general rules, which a limited view does not see.
func (s *Store) presentRules(tx db.Tx, v viewer, project ProjectRef, ruleType RuleType) ([]kernel.Memory, error) {
	var row int64
	if project != (ProjectRef{}) {
		p, err := naming.Find(tx, v, project.ID, project.Name)
		if err != nil || p == nil {
			return nil, err
		}
		row = p.Row
	}
	return writing.Rules(tx, v, s.now(), row, string(ruleType))
}

// noRule is the error for a missing rule: the same message whether the project is unknown, invisible or has none.
func (s *Store) noRule(project ProjectRef, ruleType RuleType) error {
	what := fmt.Sprintf("no rule of rule_type %q", ruleType)
	if ruleType == RuleTodo {
		what = "no todo; store one with its five sections first"
	}
	switch {
	case project.ID != "":
		return newError(KindNotFound, "project_id", "{} %s has %s", show(project.ID), what)
	case project.Name != "":
		return newError(KindNotFound, "project_name", "{} %s has %s", show(project.Name), what)
	}
	if s.access.Projects != nil {
		return newError(KindNotFound, "project_id",
			"general rules are not visible here: this view is limited to the projects %s; give one of them",
			oneOf(s.access.Projects))
	}
	return newError(KindNotFound, "rule_type", "there is no general rule of {} %q", ruleType)
}

// ruleEdit is a change to a project's one rule of a type. The new state may depend on the current one: it is computed
// in the write transaction, so that no concurrent edit is lost.
type ruleEdit struct {
	project  ProjectRef
	ruleType RuleType
	expected int // revision; 0: any

	// next returns the new state of the rule, given the current one, nil if there is none yet. It is called more than
	// once.
	next func(present *kernel.RuleText) (kernel.RuleText, error)
}

// after returns the rule's state after the edit, given the existing rules of its type.
func (e ruleEdit) after(present []kernel.Memory) (kernel.RuleText, error) {
	var before *kernel.RuleText
	revision := 0
	if len(present) > 0 {
		m := present[0]
		if err := m.Expect(e.expected); err != nil {
			return kernel.RuleText{}, err
		}
		before, revision = &kernel.RuleText{Content: m.Content, Tags: m.Tags, Related: m.Related}, m.Revision
	}
	next, err := e.next(before)
	if err != nil {
		return kernel.RuleText{}, err
	}
	if e.expected > 0 && revision == 0 {
		return kernel.RuleText{}, newError(KindConflict, "expected_revision",
			"{} is %d, but there is no such rule; 0 means any", e.expected)
	}
	return next, valid.NewContent(next.Content)
}

// editRule makes the change. It splits and embeds the resulting text before the transaction; if others have edited the
// rule meanwhile, it does so again for the new parts. After losing twice, the edit is stored anyway, and its new
// passages are embedded in the background.
func (s *Store) editRule(ctx context.Context, e ruleEdit) (StoredRule, error) {
	if err := checkExpected(e.expected); err != nil {
		return StoredRule{}, err
	}
	if err := s.checkWritable(); err != nil {
		return StoredRule{}, err
	}
	if err := valid.Project(e.project.ID, e.project.Name); err != nil {
		return StoredRule{}, err
	}
	const tries = 3
	ready := kernel.Prepared{}
	for try := 1; ; try++ {
		warnings, err := s.prepareRule(ctx, e, ready)
		if err != nil {
			return StoredRule{}, err
		}
		var stored StoredRule
		err = s.write(ctx, func(tx db.Tx, v viewer) error {
			stored, err = s.storeRule(tx, v, e, ready, try == tries)
			return err
		})
		if errors.Is(err, errUnprepared) {
			continue
		}
		if err == nil && !stored.Indexed {
			stored.Warnings = append(stored.Warnings, warnings...)
			s.wake(ctx)
		}
		return stored, err
	}
}

var errUnprepared = errors.New("the rule was changed while its text was embedded")

// prepareRule makes the passages of the edited rule that are not ready yet. It reuses the memory's existing vectors.
func (s *Store) prepareRule(ctx context.Context, e ruleEdit, ready kernel.Prepared) (warnings []string, err error) {
	var content string
	var ownVectors bool
	var known map[string][]float32
	err = s.read(ctx, func(tx db.Tx, v viewer) error {
		present, err := s.rulesToWrite(tx, v, e)
		if err != nil {
			return err
		}
		next, err := e.after(present)
		if err != nil {
			return err
		}
		content = next.Content
		if len(present) == 0 {
			_, profile, _, err := kernel.OwnCollection(tx, v.User, DefaultCollection)
			ownVectors = profile != 0
			return err
		}
		ownVectors = present[0].OwnVectors
		if content == present[0].Content {
			content = "" // nothing to do
		}
		known, err = kernel.PassageVectors(tx, present[0].Row, s.profile, present[0].ID, present[0].Content)
		return err
	})
	if err != nil {
		return nil, err
	}
	missing := ready.Add(content, maxInput(s.embedder), known)
	if ownVectors {
		missing = nil
	}
	vectors, warnings, err := s.embedTexts(ctx, missing, func(string, int, int) {})
	ready.SetVectors(missing, vectors)
	return warnings, err
}

// rulesToWrite returns the rules that an edit changes, as presentRules does, for the project that it would be stored
// in. An edit of a rule that must exist does not create a project: then a project that the caller can only read is an
// error.
func (s *Store) rulesToWrite(tx db.Tx, v viewer, e ruleEdit) ([]kernel.Memory, error) {
	var present []kernel.Memory
	var err error
	if e.project == (ProjectRef{}) {
		present, err = s.presentRules(tx, v, e.project, e.ruleType)
	} else {
		var p *naming.Project
		if p, _, err = s.writing().FindProject(tx, v, e.project.ID, e.project.Name); err == nil && p != nil {
			present, err = writing.Rules(tx, v, s.now(), p.Row, string(e.ruleType))
		}
		if errors.Is(err, ErrForbidden) {
			err = nil // it may not be created; whether it would be is checked below and when the rule is stored
		}
	}
	if err != nil {
		return nil, err
	}
	if len(present) == 0 {
		if _, err := e.after(nil); !errors.Is(err, ErrNotFound) {
			return nil, nil
		}
		if present, err = s.presentRules(tx, v, e.project, e.ruleType); err != nil {
			return nil, err
		}
	}
	if len(present) > 0 && !present[0].Writable {
		return nil, forbiddenRule(present[0])
	}
	return present, nil
}

// storeRule makes the change in the transaction. If passages are not ready, it returns errUnprepared, except on the
// last try: then they are stored without vectors.
func (s *Store) storeRule(tx db.Tx, v viewer, e ruleEdit, ready kernel.Prepared, last bool) (StoredRule, error) {
	w, err := s.writing().NewWriter(tx, v)
	if err != nil {
		return StoredRule{}, err
	}
	present, err := w.RulesForWrite(e.project.ID, e.project.Name, string(e.ruleType))
	if err != nil {
		return StoredRule{}, err
	}
	next, err := e.after(present)
	if err != nil {
		return StoredRule{}, err
	}
	d := kernel.Draft{Content: next.Content, Collection: DefaultCollection, Attributes: kernel.Attributes{
		EventType: EventProjectRule, RuleType: string(e.ruleType), ProjectID: e.project.ID, ProjectName: e.project.Name,
		Tags: valid.Distinct(next.Tags), Related: valid.Distinct(next.Related),
	}}
	changed := len(present) == 0 || present[0].Content != next.Content
	if changed {
		complete := false
		if d.Passages, complete = ready.Assemble(next.Content, maxInput(s.embedder)); !complete && !last {
			return StoredRule{}, errUnprepared
		}
	}
	written, err := w.PutRule(&d, present, changed)
	if err != nil {
		return StoredRule{}, err
	}
	stored := StoredRule{StoredMemory: storedOf(written), Created: len(present) == 0}
	stored.Warnings = slices.Concat(stored.Warnings, writing.Superfluous(present))
	return stored, w.Flush()
}

// rule lets the hooks rewrite a rule or a todo.
func (o *operation) rule(ctx context.Context, project ProjectRef, t RuleType, r kernel.RuleText) (kernel.RuleText,
	error) {
	if o == nil {
		return r, nil
	}
	o.in(project)
	o.counts(1)
	m := NewMemory{Collection: DefaultCollection, Content: r.Content, EventType: EventProjectRule, RuleType: t,
		ProjectID: project.ID, ProjectName: project.Name, Tags: slices.Clone(r.Tags), Related: slices.Clone(r.Related)}
	if err := o.beforeStore(ctx, &m); err != nil {
		return r, err
	}
	return kernel.NewRuleText(m.Content, m.Tags, m.Related)
}
