package projects

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

const day = 24 * time.Hour

// retentionForm is the form of a project's rule for how long its memories stay.
func retentionForm(rule souvenir.Retention) web.Form {
	value := ""
	if rule.After != 0 {
		value = strconv.FormatInt(int64((rule.After+day-1)/day), 10)
	}
	return web.Form{Fields: []web.Field{{Name: "days", Label: "Days without a change", Type: "text", Value: value,
		Autocomplete: "off", Optional: true, Argument: "retention",
		Hint: "Memories without a change for so many days go to the trash. Rules stay. Empty: all stay."}}}
}

// parseRetention reads the days of the form.
func parseRetention(days string) (souvenir.Retention, error) {
	if days == "" {
		return souvenir.Retention{}, nil
	}
	n, err := strconv.ParseInt(days, 10, 64)
	if most := int64(souvenir.MaxRetention / day); err != nil || n < 1 || n > most {
		return souvenir.Retention{}, failure.Invalid("days", "days is "+failure.Quote(days)+
			"; a whole number from 1 to "+strconv.FormatInt(most, 10)+" is expected, or nothing")
	}
	return souvenir.Retention{After: time.Duration(n) * day}, nil
}

// changeRetention sets the rule. If it would remove memories at once, the page says how many, and asks again.
func (s *Service) changeRetention(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	head, err := s.projectAt(r, c, "Settings")
	if err != nil {
		return nil, err
	}
	days := strings.TrimSpace(values.Get("days"))
	rule, err := parseRetention(days)
	due := 0
	if err == nil && rule.After != 0 {
		due, err = c.Store.Insights().CountDue(r.Context(),
			souvenir.DueQuery{Project: head.Reference(), Retention: rule})
	}
	if err == nil && due > 0 && values.Get("agreed") != days {
		return s.retentionAgain(r, head, days, func(data *settingsOfProject) { data.Due = due }, nil)
	}
	ref, before := head.Reference(), head.Retention
	if err == nil {
		_, err = c.Store.UpdateProject(r.Context(), ref, souvenir.ProjectUpdate{Retention: &rule})
	}
	if err != nil {
		return s.retentionAgain(r, head, days, func(data *settingsOfProject) { data.Keep.Refuse(err) }, err)
	}
	text := "Memories of the project stay."
	if rule.After != 0 {
		text = "Memories of the project go to the trash " + inDays(rule) + " after their last change."
	}
	return s.site.DoneWithUndo(c, head.Path+"/settings", text, func(ctx context.Context) error {
		now, err := c.Store.GetProject(ctx, ref)
		if err == nil && now.Retention != rule {
			err = &failure.Error{Status: http.StatusConflict,
				Message: "this cannot be undone: the rule has been changed again since"}
		}
		if err == nil {
			_, err = c.Store.UpdateProject(ctx, ref, souvenir.ProjectUpdate{Retention: &before})
		}
		return err
	}), nil
}

// retentionAgain is the page of settings with what was typed.
func (s *Service) retentionAgain(r *http.Request, head projectHead, days string, change func(*settingsOfProject),
	reason error) (any, error) {
	p, err := s.projectSettings(r, head)
	if err != nil {
		return nil, err
	}
	data, ok := p.Data.(*settingsOfProject)
	if ok {
		data.Keep.Fields[0].Value = days
		change(data)
	}
	if reason == nil {
		return p, nil
	}
	return web.Again(p, reason)
}

// Stay says how long memories stay; empty: always.
func (h projectHead) Stay() string {
	if h.Retention.After == 0 {
		return ""
	}
	days := inDays(h.Retention)
	if h.Retention.Delete {
		return "Memories without a change for " + days + " are deleted for good."
	}
	return "Memories without a change for " + days + " go to the trash."
}

// inDays is a rule's time in words.
func inDays(rule souvenir.Retention) string {
	if rule.After <= day {
		return "a day"
	}
	return strconv.FormatInt(int64((rule.After+day-1)/day), 10) + " days"
}
