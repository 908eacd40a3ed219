package server

import (
	"net/http"
	"strconv"
)

// pager leads through a list that is too long for one page.
type pager struct {
	Name        string // of the parameter that says which part is shown, and id of the list's heading
	Page, Pages int    // from 1 on
}

// listed is how many things of a list a page shows.
const listed = 25

// part is what a page shows of a list: what the parameter of a name says, or the first part.
func part[T any](all []T, r *http.Request, name string) ([]T, pager) {
	p := pager{Name: name, Page: 1, Pages: max(1, (len(all)+listed-1)/listed)}
	if asked, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
		p.Page = min(max(asked, 1), p.Pages)
	}
	begin := (p.Page - 1) * listed
	return all[begin:min(begin+listed, len(all))], p
}

// Before is the number of the part before; 0: this is the first.
func (p pager) Before() int { return p.Page - 1 }

// After is the number of the part after; 0: this is the last.
func (p pager) After() int {
	if p.Page == p.Pages {
		return 0
	}
	return p.Page + 1
}
