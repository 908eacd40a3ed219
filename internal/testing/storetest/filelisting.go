package storetest

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// listFiles returns the names of the files in a listing, over all pages.
func (f *fixture) listFiles(l souvenir.FileList) []string {
	f.Helper()
	var names []string
	for file, err := range f.reader.Files(f.ctx, l) {
		f.check(fmt.Sprintf("Files %+v", l), err)
		names = append(names, file.Filename)
	}
	return names
}

func fileListing(f *fixture) {
	m := f.add(souvenir.NewMemory{Content: "x", ProjectID: "apollo"})
	add := func(n souvenir.NewFile) souvenir.File { f.clock.Pass(time.Second); return f.addFile(n, n.Filename) }
	first := add(souvenir.NewFile{Filename: "1", MemoryID: m.ID, Category: "plan", Tags: []string{"a", "b"}})
	add(souvenir.NewFile{Filename: "2", ProjectID: "apollo", Tags: []string{"b"}})
	add(souvenir.NewFile{Filename: "3", Category: "plan", Tags: []string{"c"}})
	add(souvenir.NewFile{Filename: "4", Category: "Plan"})
	f.clock.Pass(time.Second)
	category := "plan2"
	f.updateFile(first.ID, souvenir.FileUpdate{Category: &category})
	category = "plan"
	f.updateFile(first.ID, souvenir.FileUpdate{Category: &category})
	for _, c := range []struct {
		list souvenir.FileList
		want string
	}{
		{souvenir.FileList{}, "4321"},
		{souvenir.FileList{Sort: souvenir.SortCreatedAsc}, "1234"},
		{souvenir.FileList{Sort: souvenir.SortUpdatedDesc}, "1432"},
		{souvenir.FileList{Sort: souvenir.SortUpdatedAsc}, "2341"},
		{souvenir.FileList{MemoryID: m.ID}, "1"},
		{souvenir.FileList{MemoryID: "nowhere"}, ""},
		{souvenir.FileList{ProjectID: "apollo"}, "21"},
		{souvenir.FileList{ProjectName: "apollo"}, "21"},
		{souvenir.FileList{ProjectID: "unknown"}, ""},
		{souvenir.FileList{Category: "plan"}, "31"},
		{souvenir.FileList{Tags: []string{"b", "c"}}, "321"},
		{souvenir.FileList{Tags: []string{"b"}, Category: "plan", ProjectID: "apollo", MemoryID: m.ID}, "1"},
	} {
		f.equal(fmt.Sprintf("Files %+v", c.list), strings.Join(f.listFiles(c.list), ""), c.want)
	}
	f.clock.Pass(time.Second)
	f.addFile(souvenir.NewFile{Filename: "Über_50%.TXT", MIMEType: "text/plain"}, "x")
	f.clock.Pass(time.Second)
	f.addFile(souvenir.NewFile{Filename: "page.txt", MIMEType: "text/plain; charset=utf-8"}, "x")
	f.clock.Pass(time.Second)
	f.addFile(souvenir.NewFile{Filename: "table.csv", MIMEType: "text/csv"}, "x")
	for _, c := range []struct {
		list souvenir.FileList
		want string
	}{
		{souvenir.FileList{Filename: ".txt"}, "page.txt Über_50%.TXT"},
		{souvenir.FileList{Filename: "BER_50%"}, "Über_50%.TXT"}, {souvenir.FileList{Filename: "_"}, "Über_50%.TXT"},
		{souvenir.FileList{Filename: "nothing"}, ""},
		{souvenir.FileList{MIMEType: "text/plain", Filename: "."}, "page.txt Über_50%.TXT"},
		{souvenir.FileList{MIMEType: "text/*", Filename: "."}, "table.csv page.txt Über_50%.TXT"},
		{souvenir.FileList{MIMEType: "text/csv"}, "table.csv"},
		{souvenir.FileList{MIMEType: "text/c"}, ""}, {souvenir.FileList{MIMEType: "image/*"}, ""},
	} {
		f.equal(fmt.Sprintf("Files %+v", c.list), strings.Join(f.listFiles(c.list), " "), c.want)
	}
	for _, c := range []struct {
		list     souvenir.FileList
		argument string
	}{
		{souvenir.FileList{Sort: souvenir.SortRelevance}, "sort_order"},
		{souvenir.FileList{ProjectID: "\x00"}, "project_id"},
		{souvenir.FileList{Category: "\x00"}, "category"},
		{souvenir.FileList{Tags: []string{""}}, "tags"},
		{souvenir.FileList{Filename: "\xff"}, "filename"},
		{souvenir.FileList{MIMEType: "*/*"}, "mime_type"},
		{souvenir.FileList{MIMEType: "/*"}, "mime_type"},
		{souvenir.FileList{MIMEType: "text"}, "mime_type"},
		{souvenir.FileList{MIMEType: "text/plain; charset=utf-8"}, "mime_type"},
	} {
		for _, err := range f.reader.Files(f.ctx, c.list) {
			f.failsAt(fmt.Sprintf("Files %+v", c.list), err, souvenir.ErrInvalid, c.argument)
		}
	}
}

func filePages(f *fixture) {
	const all = "edcba"
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		f.clock.Pass(time.Second)
		f.addFile(souvenir.NewFile{Filename: name, Category: map[bool]string{true: "vowel"}[name == "a" || name == "e"]},
			name)
	}
	for _, c := range []struct {
		query souvenir.FileQuery
		want  string
		total int
		more  bool
	}{
		{souvenir.FileQuery{}, all, 5, false},
		{souvenir.FileQuery{Limit: 2}, "ed", 5, true},
		{souvenir.FileQuery{Limit: 2, Offset: 2}, "cb", 5, true},
		{souvenir.FileQuery{Limit: 2, Offset: 4}, "a", 5, false},
		{souvenir.FileQuery{Limit: 2, Offset: 3}, "ba", 5, false},
		{souvenir.FileQuery{Limit: 1000, Offset: 5}, "", 5, false},
		{souvenir.FileQuery{Offset: math.MaxInt}, "", 5, false},
		{souvenir.FileQuery{FileList: souvenir.FileList{Category: "vowel"}, Limit: 1}, "e", 2, true},
		{souvenir.FileQuery{FileList: souvenir.FileList{Sort: souvenir.SortCreatedAsc}, Limit: 3}, "abc", 5, true},
		{souvenir.FileQuery{FileList: souvenir.FileList{ProjectID: "unknown"}}, "", 0, false},
	} {
		p, err := f.reader.FilePage(f.ctx, c.query)
		f.check(fmt.Sprintf("FilePage %+v", c.query), err)
		names := ""
		for _, file := range p.Files {
			names += file.Filename
		}
		f.equal(fmt.Sprintf("FilePage %+v", c.query), []any{names, p.Total, p.HasMore(), p.Files == nil},
			[]any{c.want, c.total, c.more, false})
	}
	for argument, q := range map[string]souvenir.FileQuery{
		"limit": {Limit: souvenir.MaxFileLimit + 1}, "offset": {Offset: -1},
		"sort_order": {FileList: souvenir.FileList{Sort: souvenir.SortRelevance}},
	} {
		_, err := f.reader.FilePage(f.ctx, q)
		f.failsAt(fmt.Sprintf("FilePage %+v", q), err, souvenir.ErrInvalid, argument)
	}
	_, err := f.reader.FilePage(f.ctx, souvenir.FileQuery{Limit: -1})
	f.failsAt("FilePage with a negative limit", err, souvenir.ErrInvalid, "limit")
}

func fileListingDeletes(f *fixture) {
	for i := range 260 { // more than a page
		f.addFile(souvenir.NewFile{Filename: fmt.Sprint(i)}, "x")
	}
	n := 0
	for file, err := range f.store.Files(f.ctx, souvenir.FileList{}) {
		f.check("Files", err)
		f.check("DeleteFile", f.store.DeleteFile(f.ctx, file.ID, nil))
		n++
	}
	f.equal("files gone through", n, 260)
	same(f, "files left", f.listFiles(souvenir.FileList{}), nil)
	f.addFile(souvenir.NewFile{}, "x")
	f.addFile(souvenir.NewFile{}, "x")
	for _, err := range f.store.Files(f.ctx, souvenir.FileList{}) {
		f.check("Files", err)
		break // and the listing ends
	}
}

func fileSearch(f *fixture) {
	f.equal("before there are files", toJSON(f.search(souvenir.Query{IncludeFiles: true}).Hits), "null")
	m := f.add(souvenir.NewMemory{Content: "red apple"})
	f.add(souvenir.NewMemory{Content: "green pear"})
	one := f.addFile(souvenir.NewFile{Filename: "1.txt", MemoryID: m.ID}, "x")
	f.clock.Pass(time.Second)
	two := f.addFile(souvenir.NewFile{Filename: "2.txt", MemoryID: m.ID}, "xy")
	f.addFile(souvenir.NewFile{Filename: "3.txt"}, "xyz")
	for _, q := range []souvenir.Query{{}, {Text: "red apple"}, {Text: "apple", Sort: souvenir.SortCreatedAsc}} {
		for _, include := range []bool{false, true} {
			q.IncludeFiles = include
			for _, h := range f.search(q).Hits {
				count, files := 0, []souvenir.FileSummary(nil)
				if h.ID == m.ID {
					if count = 2; include {
						files = []souvenir.FileSummary{two.Summary(), one.Summary()}
					}
				}
				f.equal("count with "+brief(q), h.FileCount, count)
				f.equal("files with "+brief(q), h.Files, files)
				if !strings.Contains(toJSON(h), fmt.Sprintf(`"file_count":%d,"files":[`, count)) {
					f.Errorf("as JSON: %s, want %q in it", toJSON(h), fmt.Sprintf(`"file_count":%d,"files":[`, count))
				}
			}
		}
	}
}
