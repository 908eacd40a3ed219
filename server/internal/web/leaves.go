package web

import (
	"net/url"
	"strconv"
)

// Leaves are links through a list whose address has parameters besides the part of the list.
type Leaves struct {
	Page, Pages   int
	Before, After string // addresses; empty: there is none
}

// LeavesOf builds the addresses from a pager and the other parameters of the page.
func LeavesOf(p Pager, others url.Values) Leaves {
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
	return Leaves{p.Page, p.Pages, address(p.Before()), address(p.After())}
}
