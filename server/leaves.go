package server

import (
	"net/url"
	"strconv"

	"github.com/souvenir-ai/souvenir/server/internal/web"
)

// leaves lead through a list whose address says more than the part that is shown.
type leaves struct {
	Page, Pages   int
	Before, After string // addresses; empty: there is none
}

// leavesOf makes addresses of what a pager knows and the other parameters of the page.
func leavesOf(p web.Pager, others url.Values) leaves {
	address := func(number int) string {
		if number < 1 {
			return ""
		}
		query := url.Values{}
		for name, values := range others {
			if values[0] != "" {
				query[name] = values
			}
		}
		query.Set(p.Name, strconv.Itoa(number))
		return "?" + query.Encode()
	}
	return leaves{p.Page, p.Pages, address(p.Before()), address(p.After())}
}
