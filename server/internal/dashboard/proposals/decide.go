package proposals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
	"github.com/souvenir-ai/souvenir/server/internal/failure"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// mostChosen is how many proposals one step decides about: all of a page.
const mostChosen = web.PerPage

// choice is a proposal that a form decides about.
type choice struct {
	id       string
	revision int
}

// decision is the decision in a form.
type decision struct {
	chosen  []choice
	refuses bool
	edits   bool
	content string
}

// decide accepts or refuses the chosen proposals.
func (s *Service) decide(w http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	values, err := s.site.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	d, err := readDecision(values)
	if err == nil {
		var done []extract.Decision
		var failed []error
		done, failed, err = d.run(r.Context(), extract.NewReviewer(c.Store))
		if err == nil && len(done) > 0 {
			return s.done(r, c, d, done, failed), nil
		}
		if err == nil {
			err = failed[0]
		}
	}
	return s.again(r, c, d, err)
}

func readDecision(values url.Values) (decision, error) {
	var d decision
	switch action := values.Get("action"); action {
	case "accept":
	case "refuse":
		d.refuses = true
	case "edit":
		d.edits, d.content = true, strings.ReplaceAll(values.Get("content"), "\r\n", "\n") // browsers send CR LF
	default:
		return d, failure.Invalid("action", "action is "+failure.Quote(action)+"; expected accept, edit or refuse")
	}
	given := slices.Compact(slices.Sorted(slices.Values(values["id"])))
	if n := len(given); n == 0 || n > mostChosen || d.edits && n > 1 {
		return d, failure.Invalid("id", fmt.Sprintf("%s selected; select 1 to %d, or edit one",
			web.Count(n, "proposal"), mostChosen))
	}
	for _, value := range given {
		id, revision, ok := readValue(value)
		if !ok {
			return d, failure.Invalid("id", "id is "+failure.Quote(value)+"; expected the one on the page of proposals")
		}
		d.chosen = append(d.chosen, choice{id, revision})
	}
	if d.edits && strings.TrimSpace(d.content) == "" {
		return d, failure.Invalid("content", "the text is empty; enter one, or decline the proposal")
	}
	return d, nil
}

// run decides about each proposal separately. An error that the user cannot fix ends it, unless something was done.
func (d decision) run(ctx context.Context, by *extract.Reviewer) (done []extract.Decision, failed []error, err error) {
	for _, chosen := range d.chosen {
		var made extract.Decision
		if d.refuses {
			made, err = by.Refuse(ctx, chosen.id)
		} else {
			made, err = by.Accept(ctx, chosen.id, extract.Answer{Content: d.content, Revision: chosen.revision})
		}
		if err == nil {
			done = append(done, made)
			continue
		}
		failed = append(failed, err)
		if status, _ := failure.Describe(err); status >= http.StatusInternalServerError {
			if len(done) == 0 {
				return nil, nil, err
			}
			break
		}
	}
	return done, failed, nil
}

// done reports the outcome, and offers to undo it.
func (s *Service) done(r *http.Request, c request.Caller, d decision, done []extract.Decision, failed []error) any {
	verb := "accepted."
	if d.refuses {
		verb = "declined."
	}
	sentences := []string{web.Count(len(done), "proposal") + " " + verb}
	reasons := map[string]int{}
	for _, err := range failed {
		reasons[reason(err)]++
	}
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		sentences = append(sentences, web.Count(reasons[why], "proposal")+" left as before: "+web.Sentence(why))
	}
	text, path := strings.Join(sentences, " "), here(r)
	last := done[len(done)-1]
	_, err := c.Store.Trash().Get(r.Context(), last.ID)
	if err != nil && !last.Stays() { // the trash is off
		return s.site.Say(c, path, text)
	}
	const each = 4 << 10 // bytes of a decision, about
	return s.site.StepDone(c, path, web.Step{Text: text, Path: path, Bytes: int64(len(done) * each),
		Back: func(ctx context.Context) error { return takeBack(ctx, extract.NewReviewer(c.Store), done) }})
}

// takeBack undoes decisions, the last one first.
func takeBack(ctx context.Context, by *extract.Reviewer, done []extract.Decision) error {
	var first, failed error
	kept := 0
	for _, d := range slices.Backward(done) {
		err := by.Undo(ctx, d)
		switch status, _ := failure.Describe(err); {
		case err == nil:
		case status >= http.StatusInternalServerError:
			failed = cmp.Or(failed, err)
		default:
			first, kept = cmp.Or(first, err), kept+1
		}
	}
	if failed != nil || kept == 0 {
		return failed
	}
	_, message := failure.Describe(first)
	if kept == len(done) && kept == 1 {
		return &failure.Error{Status: http.StatusConflict, Message: "this was not undone: " + message}
	}
	return &failure.Error{Status: http.StatusConflict, Message: fmt.Sprintf("%d of %d decisions were undone; the others "+
		"were not, the first of them because %s", len(done)-kept, len(done), message)}
}

// reason returns why a proposal was left undecided, without the parts that differ between proposals.
func reason(err error) string {
	switch {
	case errors.Is(err, souvenir.ErrNotFound):
		return "someone has accepted or declined it already, or you can no longer see it"
	case errors.Is(err, souvenir.ErrForbidden):
		return "its place is shared with you read-only"
	}
	_, message := failure.Describe(err)
	return message
}

// again shows the page with the error. Fields keep their input.
func (s *Service) again(r *http.Request, c request.Caller, d decision, err error) (any, error) {
	status, message := failure.Describe(err)
	if errors.Is(err, souvenir.ErrConflict) {
		status = http.StatusConflict
	}
	if errors.Is(err, souvenir.ErrNotFound) || errors.Is(err, souvenir.ErrForbidden) {
		message = reason(err)
	}
	var typed *item
	if d.edits && len(d.chosen) == 1 {
		typed = &item{Typed: d.content}
		typed.ID = d.chosen[0].id
		if status == http.StatusBadRequest {
			typed.Problem = web.Sentence(message)
		}
	}
	p, failed := s.page(r, c, web.Sentence(message), typed)
	if failed != nil {
		return nil, failed
	}
	if status == http.StatusConflict || status == http.StatusForbidden {
		p.Status = status
		return p, nil
	}
	return web.Again(p, err)
}
