package storetest

import (
	"fmt"
	"math"
	"slices"

	"github.com/souvenir-ai/souvenir"
)

func paging() concept {
	return concept{"Paging", []promise{
		{"neither repeats nor skips, in every order", pagingWhole},
		{"tells the total and whether there is more", pagingTotals},
		{"past the end is empty", pagingPastEnd},
	}}
}

func nan() float32 { return float32(math.NaN()) }

func near(a, b float64) bool { return math.Abs(a-b) < 1e-4 }

func pagingWhole(f *fixture) {
	timeline(f, 130)
	for _, text := range []string{"", "car", "memory about a vehicle", "***", "pelican"} {
		for _, sort := range []souvenir.SortOrder{"", souvenir.SortRelevance, souvenir.SortCreatedAsc,
			souvenir.SortCreatedDesc, souvenir.SortUpdatedAsc, souvenir.SortUpdatedDesc} {
			what := fmt.Sprintf("text %q in order %q", text, sort)
			var all []souvenir.Hit
			for {
				page := f.search(souvenir.Query{Text: text, Sort: sort, Limit: 37, Offset: len(all)})
				all = append(all, page.Hits...)
				f.equal(what+": more", page.HasMore(), len(all) < page.Total)
				if !page.HasMore() || len(page.Hits) == 0 {
					break
				}
			}
			seen := ids(all)
			slices.Sort(seen)
			f.equal(what+": distinct memories", len(slices.Compact(seen)), 130)
			for i, h := range all {
				if h.Rank != i+1 {
					f.Errorf("%s: the hit at place %d has rank %d, want the same", what, i+1, h.Rank)
				}
				if text == "" || i == 0 || sort != "" && sort != souvenir.SortRelevance {
					continue
				}
				if before := all[i-1]; before.Score < h.Score || before.Score == h.Score && before.ID > h.ID {
					f.Errorf("%s: %s with %v stands before %s with %v; want higher scores first, then by id", what,
						before.ID, before.Score, h.ID, h.Score)
				}
			}
			if compare, byTime := orders()[sort]; byTime &&
				!slices.IsSortedFunc(all, func(a, b souvenir.Hit) int { return compare(a.Memory, b.Memory) }) {
				f.Errorf("%s: got hits that are not in that order, want them in it", what)
			}
		}
	}
}

func pagingTotals(f *fixture) {
	timeline(f, 9)
	for _, c := range []struct {
		q    souvenir.Query
		hits int
		more bool
	}{
		{souvenir.Query{}, 7, true},
		{souvenir.Query{Text: "car"}, 7, true},
		{souvenir.Query{Text: "car", Limit: 9}, 9, false},
		{souvenir.Query{Limit: 9}, 9, false},
		{souvenir.Query{Limit: 4, Offset: 4}, 4, true},
		{souvenir.Query{Limit: 5, Offset: 4}, 5, false},
		{souvenir.Query{Text: "car", Limit: 4, Offset: 6}, 3, false},
		{souvenir.Query{Text: "car", Sort: souvenir.SortUpdatedAsc, Limit: 4, Offset: 4}, 4, true},
	} {
		r := f.search(c.q)
		f.equal(fmt.Sprintf("hits, total and more of %+v", c.q), []any{len(r.Hits), r.Total, r.HasMore()},
			[]any{c.hits, 9, c.more})
		f.equal("offset", r.Offset, c.q.Offset)
	}
	f.equal("total of a tag", f.search(souvenir.Query{Text: "car", Tags: []string{"t1"}, Limit: 1}).Total, 3)
}

func pagingPastEnd(f *fixture) {
	timeline(f, 3)
	for _, q := range []souvenir.Query{{}, {Text: "car"}, {Text: "car", Sort: souvenir.SortCreatedAsc}} {
		for _, offset := range []int{3, 4, 1000, 1 << 30} {
			q.Offset = offset
			r := f.search(q)
			f.equal("hits, total and more", []any{len(r.Hits), r.Total, r.HasMore()}, []any{0, 3, false})
		}
	}
	f.equal("of an empty selection", f.search(souvenir.Query{Tags: []string{"none"}}).HasMore(), false)
}
