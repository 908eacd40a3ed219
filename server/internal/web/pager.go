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
	p := Pager{Name: name, Pages: max(1, (len(all)+PerPage-1)/PerPage)}
	p.Page = min(PageNumber(r, name), p.Pages)
	begin := (p.Page - 1) * PerPage
	return all[begin:min(begin+PerPage, len(all))], p
}

// PageNumber returns the number of the part that the parameter name selects: 1 for none, and at most a million.
func PageNumber(r *http.Request, name string) int {
	asked, _ := strconv.Atoi(r.URL.Query().Get(name)) // 0 if it is no number
	return min(max(asked, 1), 1_000_000)
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
