package memories

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/server/internal/dashboard/textview"
	"github.com/souvenir-ai/souvenir/server/internal/request"
	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// similarPage is the data of the page of similar memories.
type similarPage struct {
	memoryHead
	Found    []similarMemory
	Warnings []string
	Failed   string // why there are no results; empty: no error
	Late     string // address from which a script requests the results; empty: they are here
}

// similarMemory is a memory with similar content.
type similarMemory struct {
	ID, Title string
	Percent   int    // similarity
	Part      string // the best matching passage of the memory
	UpdatedAt time.Time
}

const (
	similarText  = 600              // bytes of a memory that the search uses
	similarShown = 6                // memories
	leastSimilar = 0.35             // minimum cosine similarity
	similarTime  = 10 * time.Second // for a remote model
)

// showSimilar shows memories with content similar to a memory's. It is a page of its own, which a script loads into
// the memory's page: a remote model may be slow.
func (s *Service) showSimilar(_ http.ResponseWriter, r *http.Request, c request.Caller) (any, error) {
	head, err := s.memoryHead(r, c, "Memory")
	if err != nil {
		return nil, err
	}
	data := similarPage{memoryHead: head}
	page := web.Page{Template: "memorysimilar", Title: "Similar to “" + head.Title + "”", Part: "similar"}
	if !web.FromScript(r) { // the script of the memory's page does not wait for a second request
		if data.Late, err = s.site.Late(r, c); data.Late != "" || err != nil {
			page.Data = data
			return page, err
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), similarTime)
	defer cancel()
	results, err := c.Store.Search(ctx,
		souvenir.Query{Text: textview.CutTo(head.Content, similarText).Text, Limit: 3 * similarShown})
	switch {
	case errors.Is(err, context.DeadlineExceeded) && r.Context().Err() == nil:
		data.Failed = "The search took too long. Try again later."
	case err != nil:
		return nil, err
	}
	data.Warnings = results.Warnings
	for _, hit := range results.Hits {
		if hit.ID == head.ID || hit.Parts.Vector < leastSimilar {
			continue
		}
		data.Found = append(data.Found, similarMemory{
			ID: hit.ID, Title: Title(hit.Content), Percent: int(100*souvenir.Likeness(head.Content, hit.Content) + 0.5),
			Part: Title(hit.Content[hit.Start:hit.End]), UpdatedAt: hit.UpdatedAt,
		})
	}
	slices.SortStableFunc(data.Found, func(a, b similarMemory) int { return b.Percent - a.Percent })
	data.Found = data.Found[:min(len(data.Found), similarShown)]
	page.Data = data
	return page, nil
}
