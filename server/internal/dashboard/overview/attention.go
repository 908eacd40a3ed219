package overview

import (
	"net/http"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// attentionPage is what waits for the user. It is a page of its own, which the overview loads when it is shown: looking
// for duplicates takes longer than the rest.
type attentionPage struct{ Items []attentionItem }

// attentionItem is something that waits for the user, with the page where to deal with it.
type attentionItem struct{ Text, Path, Action string }

const (
	attentionDays  = 7    // of failed calls
	comparedOfAll  = 1000 // memories, those updated most recently
	likelyTheSame  = 0.8  // as on the page of duplicates
	countedFailed  = 100
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
	graph, err := s.graph(ctx, c, souvenir.GraphQuery{Limit: comparedOfAll, Duplicates: likelyTheSame})
	if err != nil {
		return nil, err
	}
	pairs := 0
	for _, edge := range graph.Edges {
		if edge.Kind == souvenir.EdgeSimilar {
			pairs++
		}
	}
	add(pairs, web.Count(pairs, "pair")+" of memories that say nearly the same", "/memories/duplicates", "Compare")
	failed, err := c.Store.Insights().Activities(ctx, souvenir.ActivityQuery{Outcome: souvenir.OutcomeError,
		Since: time.Now().AddDate(0, 0, -attentionDays), Limit: countedFailed})
	if err != nil {
		return nil, err
	}
	calls := web.Count(len(failed.Activities), "call")
	if failed.HasMore {
		calls = "More than " + calls
	}
	add(len(failed.Activities), calls+" failed in the last "+web.Count(attentionDays, "day"), failedCallPath, "Look")
	return web.Page{Template: "attention", Title: "Needs attention", Data: data, Part: "attention-body"}, nil
}
