package web

import (
	"net/http"
	"strconv"
)

// Pager divides a list that is too long for one page.
type Pager struct {
	Name        string // of the parameter for the part, and id of the list's heading
	Page, Pages int    // from 1
}

// PerPage is the number of list entries on a page.
const PerPage = 25

// Paginate returns the part of a list that the parameter name selects, or the first one.
func Paginate[T any](all []T, r *http.Request, name string) ([]T, Pager) {
	p := Pager{Name: name, Page: 1, Pages: max(1, (len(all)+PerPage-1)/PerPage)}
	if asked, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
		p.Page = min(max(asked, 1), p.Pages)
	}
	begin := (p.Page - 1) * PerPage
	return all[begin:min(begin+PerPage, len(all))], p
}

// Before is the number of the previous part; 0: this is the first.
func (p Pager) Before() int { return p.Page - 1 }

// After is the number of the next part; 0: this is the last.
func (p Pager) After() int {
	if p.Page == p.Pages {
		return 0
	}
	return p.Page + 1
}
