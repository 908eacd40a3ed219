package web

import (
	"net/http"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/lru"
	"github.com/souvenir-ai/souvenir/server/internal/request"
)

// AtOnce is the parameter of an address whose page has everything, even if that takes a while.
const AtOnce = "at-once"

// lateFrom is the usual [Site.LateFrom].
const lateFrom = 20_000

// Late returns the address from which a script requests the content of a page that needs a search; empty: the page has
// it. It comes late where the search would first load the index of many memories, which takes some tenths of a second.
func (s *Site) Late(r *http.Request, c request.Caller) (address string, err error) {
	query := r.URL.Query()
	if _, ready := lru.Get[bool](&s.searched, c.User.ID); ready || query.Get(AtOnce) != "" {
		return "", nil
	}
	overview, err := c.Store.Insights().Overview(r.Context(), souvenir.OverviewQuery{Days: 1, MemoriesOnly: true})
	if err != nil {
		return "", err
	}
	if overview.Index != souvenir.IndexLoading || overview.Memories < s.LateFrom {
		const bytes, most = 200, 1 << 20
		s.searched.Put(c.User.ID, true, bytes, most)
		return "", nil
	}
	query.Set(AtOnce, "yes")
	return s.Path(r.URL.EscapedPath() + "?" + query.Encode()), nil
}
