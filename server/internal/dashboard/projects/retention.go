package projects

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

const day = 24 * time.Hour

// keepForm is the form of the rule for how long the memories of a place stay.
type keepForm struct {
	web.Form
	Path string // that the form is sent to
	Name string // of the collection; empty: the path names the place
	Rule souvenir.Retention
	Due  int // how many memories the rule in the form would remove at once; the page asks
}

func newKeepForm(path string, rule souvenir.Retention) keepForm {
	value := ""
	if rule.After != 0 {
		value = strconv.FormatInt(int64((rule.After+day-1)/day), 10)
	}
	return keepForm{Path: path, Rule: rule, Form: web.Form{Fields: []web.Field{{Name: "days",
		Label: "Days without a change", Type: "text", Value: value, Autocomplete: "off", Optional: true,
		Argument: "retention",
		Hint: "Memories that have not changed for this many days are moved to the trash, except rules. Empty: keep " +
			"all."}}}}
}

// Stay says how long memories stay; empty: always.
func (f keepForm) Stay() string { return stay(f.Rule) }

// keeper is a place whose memories can have a rule: a project or a collection.
type keeper struct {
	noun, page string // the page has its settings
	due        souvenir.DueQuery
	rule       souvenir.Retention // that it has
	read       func(context.Context) (souvenir.Retention, error)
	write      func(context.Context, souvenir.Retention) error
	again      func(reason error, change func(*keepForm)) (any, error) // the page again
}

// parseRetention reads the days of the form.
func parseRetention(days string) (souvenir.Retention, error) {
	if days == "" {
		return souvenir.Retention{}, nil
	}
	n, err := strconv.ParseInt(days, 10, 64)
	if most := int64(souvenir.MaxRetention / day); err != nil || n < 1 || n > most {
		return souvenir.Retention{}, failure.Invalid("days", "days is "+failure.Quote(days)+
			"; expected a whole number from 1 to "+strconv.FormatInt(most, 10)+", or nothing")
	}
	return souvenir.Retention{After: time.Duration(n) * day}, nil
}

// changeRetention sets the rule of a project.
func (s *Service) changeRetention(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	head, err := s.projectAt(r, c, "Settings")
	if err != nil {
		return nil, err
	}
	ref := head.Reference()
	return s.keep(r.Context(), c, values, keeper{noun: "project", page: head.Path + "/settings",
		due: souvenir.DueQuery{Project: ref}, rule: head.Retention,
		read: func(ctx context.Context) (souvenir.Retention, error) {
			p, err := c.Store.GetProject(ctx, ref)
			return p.Retention, err
		},
		write: func(ctx context.Context, rule souvenir.Retention) error {
			_, err := c.Store.UpdateProject(ctx, ref, souvenir.ProjectUpdate{Retention: &rule})
			return err
		},
		again: func(reason error, change func(*keepForm)) (any, error) {
			return s.settingsAgain(r, head, reason, func(data *settingsOfProject) { change(&data.Keep) })
		}})
}

// keep sets the rule of a place. If it would remove memories at once, the page says how many, and asks again.
func (s *Service) keep(ctx context.Context, c request.Caller, values url.Values, k keeper) (any, error) {
	days := strings.TrimSpace(values.Get("days"))
	rule, err := parseRetention(days)
	if k.due.Retention = rule; err == nil && rule.After != 0 {
		due, failed := c.Store.Insights().CountDue(ctx, k.due)
		if err = failed; err == nil && due > 0 && values.Get("agreed") != days {
			return k.again(nil, func(f *keepForm) { f.Due, f.Fields[0].Value = due, days })
		}
	}
	if err == nil {
		err = k.write(ctx, rule)
	}
	if err != nil {
		return k.again(err, func(f *keepForm) {
			f.Fields[0].Value = days
			f.Refuse(err)
		})
	}
	text := "Memories of the " + k.noun + " stay."
	if rule.After != 0 {
		text = "Memories of the " + k.noun + " are moved to the trash " + inDays(rule) + " after their last change."
	}
	return s.site.DoneWithUndo(c, k.page, text, undoSetting(c.Store, "the rule has been changed",
		func(ctx context.Context) (bool, error) {
			now, err := k.read(ctx)
			return now == rule, err
		}, func(ctx context.Context) error { return k.write(ctx, k.rule) })), nil
}

// Stay says how long memories stay; empty: always.
func (h projectHead) Stay() string { return stay(h.Retention) }

func stay(rule souvenir.Retention) string {
	switch {
	case rule.After == 0:
		return ""
	case rule.Delete:
		return "Memories without a change for " + inDays(rule) + " are deleted permanently."
	}
	return "Memories without a change for " + inDays(rule) + " are moved to the trash."
}

// inDays is a rule's time in words.
func inDays(rule souvenir.Retention) string {
	if rule.After <= day {
		return "a day"
	}
	return strconv.FormatInt(int64((rule.After+day-1)/day), 10) + " days"
}
