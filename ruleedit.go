package souvenir

import (
	"context"
	"errors"
	"slices"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/naming"
	"github.com/souvenir-ai/souvenir/internal/valid"
)

// ruleEdit is a change to a project's one rule of a type. The new state may depend on the current one: it is computed
// in the write transaction, so that no concurrent edit is lost.
type ruleEdit struct {
	project  ProjectRef
	ruleType RuleType
	expected int // revision; 0: any

	// next returns the new state of the rule, given the current one, nil if there is none yet. It is called more than
	// once.
	next func(present *ruleState) (ruleState, error)
}

// ruleState is the part of a rule that an edit may change.
type ruleState struct {
	content       string
	tags, related []string
}

// newRuleState validates the state that a caller requests for a rule.
func newRuleState(content string, tags, related []string) (ruleState, error) {
	if err := valid.NewContent(content); err != nil {
		return ruleState{}, err
	}
	a := kernel.Attributes{Tags: tags, Related: related}
	if err := a.Check(); err != nil {
		return ruleState{}, err
	}
	r := ruleState{content: content, tags: tags, related: related}
	if tags != nil {
		r.tags = append([]string{}, a.Tags...)
	}
	if related != nil {
		r.related = append([]string{}, a.Related...)
	}
	return r, nil
}

// over returns the state after storing r over the current one: nil lists keep the current values.
func (r ruleState) over(present *ruleState) (ruleState, error) {
	if present != nil && r.tags == nil {
		r.tags = present.tags
	}
	if present != nil && r.related == nil {
		r.related = present.related
	}
	return r, nil
}

// after returns the rule's state after the edit, given the existing rules of its type.
func (e ruleEdit) after(present []storedMemory) (ruleState, error) {
	var before *ruleState
	revision := 0
	if len(present) > 0 {
		m := present[0]
		if err := m.expect(e.expected); err != nil {
			return ruleState{}, err
		}
		before, revision = &ruleState{content: m.Content, tags: m.Tags, related: m.Related}, m.Revision
	}
	next, err := e.next(before)
	if err != nil {
		return ruleState{}, err
	}
	if e.expected > 0 && revision == 0 {
		return ruleState{}, newError(KindConflict, "expected_revision",
			"expected_revision is %d, but there is no such rule; 0 means any", e.expected)
	}
	return next, valid.NewContent(next.content)
}

// editRule makes the change. It splits and embeds the resulting text before the transaction; if others have edited the
// rule meanwhile, it does so again for the new parts. After losing twice, the edit is stored anyway, and its new
// passages are embedded in the background.
func (s *Store) editRule(ctx context.Context, e ruleEdit) (StoredRule, error) {
	if e.expected < 0 {
		return StoredRule{}, invalid("expected_revision", "expected_revision is %d; a revision is 1 or more, and 0 means any",
			e.expected)
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
			s.worker.Wake()
		}
		return stored, err
	}
}

var errUnprepared = errors.New("the rule was changed while its text was embedded")

// prepareRule makes the passages that the edit now results in and that are not ready yet. It reuses the memory's
// existing vectors.
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
		content = next.content
		if len(present) == 0 {
			_, profile, _, err := kernel.OwnCollection(tx, v.User, DefaultCollection)
			ownVectors = profile != 0
			return err
		}
		ownVectors = present[0].ownVectors
		if content == present[0].Content {
			content = "" // nothing to do
		}
		known, err = kernel.PassageVectors(tx, present[0].row, s.profile, present[0].ID, present[0].Content)
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
func (s *Store) rulesToWrite(tx db.Tx, v viewer, e ruleEdit) ([]storedMemory, error) {
	var present []storedMemory
	var err error
	if e.project == (ProjectRef{}) {
		present, err = s.presentRules(tx, v, e.project, e.ruleType)
	} else {
		var p *naming.Project
		if p, _, err = s.projectToWrite(tx, v, e.project.ID, e.project.Name); err == nil && p != nil {
			present, err = s.rulesAt(tx, v, p.Row, e.ruleType)
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
	if len(present) > 0 && !present[0].writable {
		return nil, forbiddenRule(present[0])
	}
	return present, nil
}

// storeRule makes the change in the transaction. If passages are not ready, it returns errUnprepared, except on the
// last try: then they are stored without vectors.
func (s *Store) storeRule(tx db.Tx, v viewer, e ruleEdit, ready kernel.Prepared, last bool) (StoredRule, error) {
	w, err := s.newWriter(tx, v)
	if err != nil {
		return StoredRule{}, err
	}
	project, err := w.project(e.project.ID, e.project.Name)
	if err != nil {
		return StoredRule{}, err
	}
	if project == 0 && e.ruleType == RuleTodo {
		return StoredRule{}, todoNeedsProject()
	}
	present, err := s.rulesAt(tx, w.Viewer, project, e.ruleType)
	if err != nil {
		return StoredRule{}, err
	}
	next, err := e.after(present)
	if err != nil {
		return StoredRule{}, err
	}
	d := kernel.Draft{Content: next.content, Collection: DefaultCollection, Attributes: kernel.Attributes{
		EventType: EventProjectRule, RuleType: string(e.ruleType), ProjectID: e.project.ID, ProjectName: e.project.Name,
		Tags: valid.Distinct(next.tags), Related: valid.Distinct(next.related),
	}}
	changed := len(present) == 0 || present[0].Content != next.content
	if changed {
		complete := false
		if d.Passages, complete = ready.Assemble(next.content, maxInput(s.embedder)); !complete && !last {
			return StoredRule{}, errUnprepared
		}
	}
	stored := StoredRule{Created: len(present) == 0}
	if stored.Created {
		stored.Stored, err = w.insert(&d)
	} else {
		after := present[0]
		after.Content, after.Tags, after.Related = next.content, next.tags, next.related
		content := &d
		if !changed {
			content = nil
		}
		stored.Stored, err = w.update(present[0], after, content)
		w.addProjectWarnings(&stored.Stored, e.project.ID, e.project.Name)
	}
	if err != nil {
		return StoredRule{}, err
	}
	stored.Warnings = slices.Concat(stored.Warnings, superfluous(present))
	return stored, w.flush()
}
