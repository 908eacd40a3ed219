package upkeep

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// auditPage is the data of the page of the audit log.
type auditPage struct {
	Kinds   []auditKind
	What    string // the chosen kind; empty: all
	Actor   string // the id of the chosen user; empty: anyone
	Name    string // of the chosen user
	On      string // the id of the chosen object
	Some    bool   // entries are left out
	Entries []auditRow
	Older   string // path of the next part; empty: none
	Newest  string // path of the first part; empty: this is it
	Wrong   string // error in the address; empty: none

	Anchor    web.Field // to verify with
	Verifying bool      // a report was asked for
	Report    *souvenir.AuditReport
	More      int // problems that are not shown
	Took      string
}

type auditKind struct {
	Name, Path string
	Here       bool
}

// auditRow is an entry of the log in words.
type auditRow struct {
	souvenir.AuditEntry
	By      string // who did it
	ByPath  string // the entries of who did it; empty: no user
	Text    string // what was done, after By
	OnPath  string // the entries about the same object; empty: it has no id
	Way     string
	Details string // that the sentence does not have
}

// auditPrefixes are the filters, as prefixes of actions.
var auditPrefixes = []struct{ prefix, name string }{
	{"", "Everything"}, {"user", "Users"}, {"invitation", "Links for new users"}, {"access", "Revoked access"},
	{"identity", "External sign-in"}, {"token", "Tokens"}, {"client", "OAuth clients"}, {"grant", "Applications"},
	{"member", "Members"}, {"setting", "Settings"}, {"key", "Keys"}, {"backup", "Backups"}, {"export", "Exports"},
	{"import", "Imports"}, {"purge", "Cleanups"}, {"audit", "This log"},
}

const (
	auditLong       = 20 * time.Second // a check of the chain may take; 100,000 entries take about 2 s
	auditMostShown  = 50               // problems
	auditMostValues = 300              // bytes of details
)

// audit loads the page before any input.
func (s *Service) audit(r *http.Request, c request.Caller) (web.Page, *auditPage, error) {
	asked := r.URL.Query()
	data := &auditPage{What: asked.Get("what"), Actor: asked.Get("actor"), On: asked.Get("on"),
		Anchor: web.Field{Name: "anchor", Argument: "anchor", Label: "Anchor", Type: "text",
			Autocomplete: "off", Optional: true,
			Hint: "NUMBER:HASH, as shown by an earlier check. Empty: verify only the chain."}}
	page := web.Page{Template: "audit", Title: "Audit log", Data: data}
	at := func(change map[string]string) string {
		values := url.Values{}
		for name, value := range map[string]string{"what": data.What, "actor": data.Actor, "on": data.On} {
			if to, is := change[name]; is {
				value = to
			}
			if value != "" {
				values.Set(name, value)
			}
		}
		if before := change["before"]; before != "" {
			values.Set("before", before)
		}
		if len(values) == 0 {
			return "/audit"
		}
		return "/audit?" + values.Encode()
	}
	for _, kind := range auditPrefixes {
		data.Kinds = append(data.Kinds, auditKind{kind.name, at(map[string]string{"what": kind.prefix}),
			kind.prefix == data.What})
	}
	data.Some = data.What != "" || data.Actor != "" || data.On != ""
	before, err := strconv.ParseInt(asked.Get("before"), 10, 64)
	if asked.Get("before") != "" && (err != nil || before < 1) {
		data.Wrong = "Before is " + failure.Quote(textview.Clip(asked.Get("before"), 40)) +
			"; expected the number of an entry"
		return page, data, nil
	}
	if before > 0 {
		data.Newest = at(nil)
	}
	things := auditThings{ctx: r.Context(), c: c, known: map[string]map[string]string{}}
	names := AuditNames{ctx: r.Context(), accounts: s.store.Accounts(), known: map[string]string{}}
	if data.Actor != "" {
		data.Name = names.Of(data.Actor)
	}
	query := souvenir.AuditQuery{Before: before, Action: data.What, Actor: data.Actor, Object: data.On}
	for e, err := range s.store.Upkeep().AuditEntries(r.Context(), query) {
		if err != nil {
			if errors.Is(err, souvenir.ErrInvalid) {
				data.Wrong = "The address has an invalid filter."
				return page, data, nil
			}
			return page, data, err
		}
		if len(data.Entries) == web.PerPage {
			data.Older = at(map[string]string{"before": strconv.FormatInt(data.Entries[web.PerPage-1].Seq, 10)})
			break
		}
		nameOf, here, thing := names.Of, e.Namespace == "", ""
		if here {
			thing = things.of(e)
		} else {
			nameOf = foreignName // its ids may belong to other users and objects here
		}
		row := auditRow{AuditEntry: e, By: auditNoUser[e.Actor.Via], Text: AuditText(e, nameOf, thing),
			Way: auditWay(e.Actor), Details: auditDetails(e, nameOf)}
		if e.Actor.User != "" {
			row.By = nameOf(e.Actor.User)
		}
		if e.Actor.User != "" && here {
			row.ByPath = at(map[string]string{"actor": e.Actor.User})
		}
		if e.Object != "" && e.Object != data.On && here {
			row.OnPath = at(map[string]string{"on": e.Object, "what": "", "actor": ""})
		}
		data.Entries = append(data.Entries, row)
	}
	return page, data, errors.Join(names.err, things.err)
}

func (s *Service) showAudit(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	page, _, err := s.audit(r, c)
	return page, err
}

// verifyAudit follows the chain of the log, one check at a time and within bounded time.
func (s *Service) verifyAudit(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	form, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	page, data, err := s.audit(r, c)
	if err != nil {
		return nil, err
	}
	data.Anchor.Value, data.Verifying = form.Get("anchor"), true
	anchor, err := auditAnchor(form.Get("anchor"))
	if err != nil {
		return s.auditAgain(page, data, err)
	}
	select {
	case s.verifying <- struct{}{}:
		defer func() { <-s.verifying }()
	default:
		return nil, &failure.Error{Status: http.StatusConflict,
			Message: "the log is being verified for someone else; try again in a moment"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), auditLong)
	defer cancel()
	began := time.Now()
	report, err := s.store.Upkeep().CheckAudit(ctx, anchor)
	switch {
	case err != nil && ctx.Err() != nil && r.Context().Err() == nil:
		return nil, &failure.Error{Status: http.StatusServiceUnavailable,
			Message: fmt.Sprintf("verifying the log took more than %s here; run \"souvenir audit verify\" on the server's "+
				"machine", web.Wait(auditLong))}
	case errors.Is(err, souvenir.ErrInvalid):
		return s.auditAgain(page, data, err)
	case err != nil:
		return nil, err
	}
	data.Took = web.Wait(time.Since(began))
	if data.More = len(report.Problems) - auditMostShown; data.More > 0 {
		report.Problems = report.Problems[:auditMostShown]
	}
	data.Report = &report
	s.log.InfoContext(r.Context(), "an admin verified the audit log", "ok", report.OK, "entries", report.Entries,
		"admin", c.User.ID)
	return page, nil
}

// auditAgain shows the page with an error at the anchor.
func (s *Service) auditAgain(page web.Page, data *auditPage, err error) (any, error) {
	form := web.Form{Fields: []web.Field{data.Anchor}}
	form.Refuse(err)
	data.Anchor = form.Fields[0]
	if form.Error != "" {
		data.Anchor.Error = form.Error
	}
	data.Anchor.Focus = true
	return web.Again(page, err)
}

// auditAnchor reads NUMBER:HASH; nil for an empty text.
func auditAnchor(text string) (*souvenir.AuditAnchor, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	number, hash, _ := strings.Cut(text, ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 0 || len(hash) != 64 || strings.Trim(strings.ToLower(hash), "0123456789abcdef") != "" {
		return nil, failure.Invalid("anchor", "anchor is "+failure.Quote(textview.Clip(text, 40))+
			"; give NUMBER:HASH, where the hash has 64 hexadecimal digits")
	}
	return &souvenir.AuditAnchor{Seq: seq, Hash: hash}, nil
}

// foreignName shows a user of another namespace, which the dashboard does not administer.
func foreignName(id string) string {
	if id == "" {
		return "someone"
	}
	return "user " + textview.Clip(id, 40)
}

// AuditNames finds the names of users, each once. Its zero value finds none and serves users without an account.
type AuditNames struct {
	ctx      context.Context // of the request for which it lives
	accounts *souvenir.Accounts
	known    map[string]string
	err      error
}

// Of returns the name of a user, or says that the account is gone: the log has no names.
func (n *AuditNames) Of(id string) string {
	if id == "" {
		return "someone"
	}
	if name, is := n.known[id]; is {
		return name
	}
	name := "deleted user " + textview.Clip(id, 8)
	switch u, err := n.accounts.GetUser(n.ctx, id); {
	case err == nil && u.ID == id: // and not another user with that name
		name = u.Name
	case err != nil && !errors.Is(err, souvenir.ErrNotFound) && !errors.Is(err, souvenir.ErrInvalid):
		n.err = errors.Join(n.err, err)
	}
	n.known[id] = name
	return name
}
