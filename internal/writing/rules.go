package writing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/fault"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/recency"
	"github.com/souvenir-ai/souvenir/internal/tododoc"
)

// Rules returns the rules of a type in a project (0: general ones), the most recently changed first. Only files from
// before rules were unique have more than one.
func Rules(tx db.Tx, v kernel.Viewer, now, project int64, ruleType string) ([]kernel.Memory, error) {
	condition, where := `p.project_id = ?`, project
	if project == 0 {
		condition, where = `p.project_id IS NULL AND c.owner_id = ?`, v.User
	}
	found, err := kernel.LoadMemories(tx, v, kernel.WholeContent, `m.event_type = ? AND m.rule_type = ? AND `+condition+
		` ORDER BY m.updated_at DESC, m.id DESC`, kernel.EventProjectRule, ruleType, where)
	if err != nil || len(found) < 2 {
		return found, err
	}
	rows, rules := make([]recency.Row, len(found)), map[int64]kernel.Memory{}
	for i, m := range found {
		rows[i], rules[m.Row] = recency.Row{Row: m.Row, At: m.Updated}, m
	}
	err = recency.Sort(tx, now, rows)
	for i, r := range rows {
		found[i] = rules[r.Row]
	}
	return found, err
}

// Superfluous returns a warning about the rules of one type that do not count.
func Superfluous(present []kernel.Memory) []string {
	if len(present) < 2 {
		return nil
	}
	var ids []string
	for _, m := range present[1:] {
		ids = append(ids, fault.Show(m.ID))
	}
	return []string{fmt.Sprintf("there are %d memories of rule_type %q here instead of one; using the newest, %s; "+
		"delete %s",
		len(present), present[0].RuleType, fault.Show(present[0].ID), strings.Join(ids, ", "))}
}

// CheckGeneralRule refuses to change a general rule through a limited view. Such a call would have to mean the rule of
// a project that it does not name.
func (s *View) CheckGeneralRule(id, name string) error {
	if id != "" || name != "" || s.Projects == nil {
		return nil
	}
	return fault.New(fault.KindForbidden, "project_id",
		"without a project this is a general rule, for all of the user's work, and this view is limited to the projects %s; "+
			"give {} or {project_name} to change that project's rule", fault.OneOf(s.Projects))
}

// RulesForWrite returns the rules of a type in the project that a write names, as Rules does. It creates an unknown
// project.
func (w *Writer) RulesForWrite(id, name, ruleType string) ([]kernel.Memory, error) {
	project, err := w.Project(id, name)
	if err != nil {
		return nil, err
	}
	if project == 0 && ruleType == kernel.RuleTodo {
		return nil, TodoNeedsProject()
	}
	return Rules(w.Tx, w.Viewer, w.view.Now(), project, ruleType)
}

// addRule stores a draft that is a rule: as a new memory, or over the existing rule. Fields that the draft leaves unset
// keep their values.
func (w *Writer) addRule(d *kernel.Draft) (Result, error) {
	if err := w.view.CheckGeneralRule(d.ProjectID, d.ProjectName); err != nil {
		return Result{}, err
	}
	present, err := w.RulesForWrite(d.ProjectID, d.ProjectName, d.RuleType)
	if err != nil {
		return Result{}, err
	}
	if len(present) == 0 {
		return w.Insert(d)
	}
	before := present[0]
	after := before
	after.Content = d.Content
	after.Attributes = before.Overlaid(d.Attributes)
	if err := after.Attributes.Check(); err != nil {
		return Result{}, err
	}
	stored, err := w.Update(before, after, d)
	w.note(&stored, d.ProjectID, d.ProjectName)
	stored.Warnings = append(stored.Warnings, Superfluous(present)...)
	if d.Collection != before.Collection && d.Collection != kernel.DefaultCollection {
		stored.Warnings = append(stored.Warnings,
			fmt.Sprintf("this rule is in collection %s and stays there", fault.Show(before.Collection)))
	}
	return stored, err
}

// PutRule stores a draft as the one rule of its type in its project, over the present ones. changed says that its
// content is new.
func (w *Writer) PutRule(d *kernel.Draft, present []kernel.Memory, changed bool) (stored Result, err error) {
	if len(present) == 0 {
		return w.Insert(d)
	}
	after := present[0]
	after.Content, after.Tags, after.Related = d.Content, d.Tags, d.Related
	content := d
	if !changed {
		content = nil
	}
	stored, err = w.Update(present[0], after, content)
	w.note(&stored, d.ProjectID, d.ProjectName)
	return stored, err
}

// TodoNeedsProject is the error for a todo without a project.
func TodoNeedsProject() error {
	return fault.Invalid("project_id", "{} and {project_name} are both empty; a todo belongs to a project, so give "+
		"one of the two")
}

// CheckRule checks that a memory's new state respects the rules' invariants: at most one rule of each type in a
// project, and only a todo document as its todo.
func (w *Writer) CheckRule(before, after kernel.Memory, at *kernel.Place) error {
	if after.RuleType == "" {
		return nil
	}
	if after.RuleType == kernel.RuleTodo {
		if at.Project == 0 {
			return TodoNeedsProject()
		}
		if before.RuleType != kernel.RuleTodo || before.Content != after.Content {
			if _, err := tododoc.Parse(after.Content); err != nil {
				return err
			}
		}
	}
	if before.RuleType == after.RuleType && before.ProjectRow == at.Project {
		return nil
	}
	present, err := Rules(w.Tx, w.Viewer, w.view.Now(), at.Project, after.RuleType)
	if err != nil {
		return err
	}
	present = slices.DeleteFunc(present, func(m kernel.Memory) bool { return m.Row == before.Row })
	if len(present) == 0 {
		return nil
	}
	return fault.New(fault.KindConflict, "rule_type",
		"memory %s is already the rule of {} %q there; update it, or delete it first", fault.Show(present[0].ID),
		after.RuleType)
}
