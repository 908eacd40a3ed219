package overview

import (
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/extract"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// attentionPage lists the things that wait for the user. It is a page of its own, which the overview loads when it is
// shown: looking for duplicates takes longer than the rest.
type attentionPage struct {
	Items []attentionItem
	Late  string // address from which a script requests the page with near duplicates; empty: they are counted
}

// attentionItem is something that waits for the user, with the page where to deal with it.
type attentionItem struct{ Text, Path, Action string }

const (
	attentionDays  = 7    // of failed calls
	comparedOfAll  = 1000 // memories, those updated most recently
	likelyTheSame  = 0.8  // as on the page of duplicates
	countedFailed  = 100
	comparedPairs  = 100 // proposals
	failedCallPath = "/activity?outcome=error"
)

// showAttention shows what needs the user's attention.
func (s *Service) showAttention(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	var data attentionPage
	add := func(n int, text, path, action string) {
		if n > 0 {
			data.Items = append(data.Items, attentionItem{text, path, action})
		}
	}
	ctx := r.Context()
	invited, err := c.Store.Accounts().ProjectInvitations(ctx)
	if err != nil {
		return nil, err
	}
	add(len(invited), web.Count(len(invited), "invitation")+" to shared projects", web.SharingPath, "Answer")
	pairs := 0
	if pairs, data.Late, err = s.countPairs(r, c); err != nil {
		return nil, err
	}
	add(pairs, web.Count(pairs, "pair")+" of near-duplicate memories", "/memories/duplicates", "Compare")
	if s.site.Proposals != nil && s.site.Proposals(r, c) > 0 {
		waiting := s.site.Proposals(r, c)
		groups, err := conflicts(r, c)
		if err != nil {
			return nil, err
		}
		groups = min(groups, waiting)
		add(groups, web.Count(groups, "proposal")+" about memories that contradict or repeat each other", web.ProposalsPath,
			"Decide")
		add(waiting-groups, web.Count(waiting-groups, "proposal")+" to decide about", web.ProposalsPath, "Review")
	}
	failed, err := c.Store.Insights().ActivityPage(ctx, souvenir.ActivityQuery{Outcome: souvenir.OutcomeError,
		Since: time.Now().AddDate(0, 0, -attentionDays), Limit: countedFailed})
	if err != nil {
		return nil, err
	}
	calls := web.Count(len(failed.Activities), "call")
	if failed.HasMore {
		calls = "More than " + calls
	}
	add(len(failed.Activities), calls+" failed in the last "+web.Count(attentionDays, "day"), failedCallPath, "Look")
	if problem := s.backupProblem(c); problem != "" {
		add(1, problem, "/backup", "Back up")
	}
	return web.Page{Template: "attention", Title: "Needs attention", Data: data, Part: "attention-body"}, nil
}

// countPairs counts the pairs of near duplicates, or returns the address of the page that does.
func (s *Service) countPairs(r *http.Request, c request.Caller) (pairs int, late string, err error) {
	if late, err := s.site.Late(r, c); late != "" || err != nil {
		return 0, late, err
	}
	graph, err := s.graph(r.Context(), c, souvenir.GraphQuery{Limit: comparedOfAll, Duplicates: likelyTheSame})
	for _, edge := range graph.Edges {
		if edge.Kind == souvenir.EdgeSimilar {
			pairs++
		}
	}
	return pairs, "", err
}

// conflicts counts the proposals about memories that contradict or repeat each other, among the oldest.
func conflicts(r *http.Request, c request.Caller) (n int, err error) {
	page, err := extract.NewReviewer(c.Store).Page(r.Context(), extract.ReviewQuery{Limit: comparedPairs})
	for _, w := range page.Waiting {
		if w.Proposal.Group != "" {
			n++
		}
	}
	return n, err
}

// backupProblem describes the problem with the backups, for admins; empty: none. The server does not know of backups
// made by other means, and reports nothing about them.
func (s *Service) backupProblem(c request.Caller) string {
	if c.User.Role != souvenir.RoleAdmin || s.backups == nil {
		return ""
	}
	b := s.backups()
	switch {
	case b.Failed && b.Made.IsZero():
		return "The last backup failed, and there is no earlier one"
	case b.Failed:
		return "The last backup failed; the newest sound one is from " + b.Made.UTC().Format("2 Jan 2006")
	case !b.Made.IsZero() && time.Since(b.Made) > 2*b.Every:
		return "The newest backup is from " + b.Made.UTC().Format("2 Jan 2006")
	}
	return ""
}
