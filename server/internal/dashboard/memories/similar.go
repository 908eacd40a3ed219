package memories

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// similarPage is what the page shows on which are memories that say similar things.
type similarPage struct {
	memoryHead
	Found    []similarMemory
	Warnings []string
	Failed   string // why there is nothing to show; empty: it worked
}

// similarMemory is a memory that says similar things.
type similarMemory struct {
	ID, Title string
	Percent   int    // how likely it is that they say the same
	Part      string // of the memory, the passage that fits best
	UpdatedAt time.Time
}

const (
	similarText  = 600              // bytes of a memory by which others are searched for
	similarShown = 6                // memories
	leastSimilar = 0.35             // cosine similarity from which on they are shown
	similarTime  = 10 * time.Second // for a model that is far away
)

// showSimilar shows the memories that say things like those that a memory says. It is a page of its own, which a script
// brings into that of the memory: a model elsewhere may take its time.
func (s *Service) showSimilar(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	head, err := s.memoryHead(r, c, "Memory")
	if err != nil {
		return nil, err
	}
	data := similarPage{memoryHead: head}
	ctx, cancel := context.WithTimeout(r.Context(), similarTime)
	defer cancel()
	results, err := c.Store.Search(ctx,
		souvenir.Query{Text: textview.CutTo(head.Content, similarText).Text, Limit: 3 * similarShown})
	switch {
	case err != nil && r.Context().Err() == nil && ctx.Err() != nil:
		data.Failed = "Searching has taken too long. Try again later."
	case err != nil:
		return nil, err
	}
	data.Warnings = results.Warnings
	for _, hit := range results.Hits {
		if hit.ID == head.ID || hit.Parts.Vector < leastSimilar {
			continue
		}
		data.Found = append(data.Found, similarMemory{
			ID: hit.ID, Title: titleOf(hit.Content), Percent: int(100*souvenir.Likeness(head.Content, hit.Content) + 0.5),
			Part: titleOf(hit.Content[hit.Start:hit.End]), UpdatedAt: hit.UpdatedAt,
		})
	}
	slices.SortStableFunc(data.Found, func(a, b similarMemory) int { return b.Percent - a.Percent })
	data.Found = data.Found[:min(len(data.Found), similarShown)]
	return web.Page{Template: "memorysimilar", Title: "Like “" + head.Title + "”", Data: data, Part: "similar"}, nil
}
