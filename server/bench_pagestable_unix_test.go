//go:build unix

package server_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/seed"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// storeOfPages names the environment variable with the file of a store for the table of pages. A missing file is
// created and kept for the next run.
const storeOfPages = "SOUVENIR_PAGES_STORE"

// BenchmarkPagesTable prints a table of all pages of a signed-in user at 100,000 memories: their length, the time on
// the server and loopback, the processor time, and the number of statements:
//
//	SOUVENIR_PAGES_STORE=/tmp/pages.db go test ./server -run '^$' -bench PagesTable -benchtime 15x -timeout 1h
//
// The first use of each page is shown separately. Minimum, median and minimum processor time are of the others, at
// least three. The page is then opened as many times again, each after an update of a memory; the table has the median
// processor time. A file made by e2e/seed is used together with what it printed, in a file of that name with .json
// added.
func BenchmarkPagesTable(b *testing.B) {
	path, filled := filledStore(b)
	var read counts
	ctx := db.WithOpener(b.Context(), countReads(path, &read))
	store, err := souvenir.Open(ctx, path, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	at := httptest.NewServer(server.New(store, &server.Options{PublicURL: servertest.PublicAt}))
	b.Cleanup(at.Close)
	session, err := store.Accounts().AddSignIn(b.Context(), souvenir.NewSignIn{User: filled.User})
	if err != nil {
		b.Fatal(err)
	}
	paths := listPaths()
	all := dashboardPaths(filled)
	for pattern := range all {
		if !slices.Contains(paths, pattern) {
			paths = append(paths, pattern)
		}
	}
	slices.Sort(paths[len(listPaths()):])
	view := store.As(souvenir.Access{User: filled.UserID})
	fmt.Println("| page | KB | first, ms | least, ms | median, ms | processor, ms | after a write, ms | statements |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, pattern := range paths {
		path := pattern
		if known := all[pattern]; known != "" {
			path = known
		}
		row := pageRow{pattern: pattern}
		row.open(b, at, path, session.Value, &read)
		for range max(b.N, 3) {
			row.open(b, at, path, session.Value, &read)
		}
		for i := range max(b.N, 3) {
			updateOne(b, store, view, filled.Memory, i)
			row.open(b, at, path, session.Value, &read)
		}
		row.print()
	}
}

// BenchmarkFirstPages prints the time and the processor time of each page, and the least of several, when it is the
// first page, but for /about, of a store that was just opened:
//
//	SOUVENIR_PAGES_STORE=/tmp/pages.db go test ./server -run '^$' -bench FirstPages -benchtime 2x -timeout 1h
func BenchmarkFirstPages(b *testing.B) {
	file, filled := filledStore(b)
	paths, all := listPaths(), dashboardPaths(filled)
	for pattern := range all {
		if !slices.Contains(paths, pattern) {
			paths = append(paths, pattern)
		}
	}
	slices.Sort(paths[len(listPaths()):])
	fmt.Println("| page | least, ms | processor, ms |")
	fmt.Println("|---|---|---|")
	for _, pattern := range paths {
		path := cmp.Or(all[pattern], pattern)
		least, processor := time.Hour, time.Hour
		for range max(b.N, 2) {
			took, used := openFirst(b, file, filled.User, path)
			least, processor = min(least, took), min(processor, used)
		}
		fmt.Printf("| %s | %.1f | %.1f |\n", pattern, least.Seconds()*1000, processor.Seconds()*1000)
	}
}

// openFirst opens a store, and a page of it.
func openFirst(b *testing.B, file, user, path string) (took, processor time.Duration) {
	store, err := souvenir.Open(b.Context(), file, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	at := httptest.NewServer(server.New(store, &server.Options{PublicURL: servertest.PublicAt}))
	defer at.Close()
	session, err := store.Accounts().AddSignIn(b.Context(), souvenir.NewSignIn{User: user})
	if err != nil {
		b.Fatal(err)
	}
	openPage(b, at, "/about", session.Value)
	time.Sleep(300 * time.Millisecond) // what goes on in the background
	began, used := time.Now(), processorTime(b)
	openPage(b, at, path, session.Value)
	return time.Since(began), processorTime(b) - used
}

// updateOne changes the text of a memory, and waits until all resulting work is done.
func updateOne(b *testing.B, store, view *souvenir.Store, id string, i int) {
	content := fmt.Sprintf("Version %d of the tiles of the coast.", i)
	_, err := view.UpdateMemory(b.Context(), id, souvenir.MemoryUpdate{Content: &content})
	if err == nil {
		err = store.Upkeep().WaitEmbedded(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
}

// listPaths returns the lists of memories that read much, in the order of opening.
func listPaths() []string {
	return []string{"/{$}", "/memories", "/memories?tag=week-7", "/memories?tag=urgent", "/memories?tag=database&page=90",
		"/memories?key=source", "/memories?key=source&value=mail", "/memories?key=confidence", "/memories?module=tiles",
		"/memories?event_type=decision", "/memories?state=archived", "/memories?archived=hide",
		"/memories?importance=high",
		"/memories?sort=" + url.QueryEscape(string(souvenir.SortCreatedAsc)),
		"/memories?page=1000", "/memories?page=3900",
		"/memories?q=tiles", "/memories?q=tiles&tag=urgent", "/context?query=tiles", "/graph?show=list", "/map?show=list",
		"/find?q=tiles", "/memories/compare?q=tiles"}
}

// filledStore returns a store of 100,000 memories with the maximum number of recorded calls.
func filledStore(b *testing.B) (path string, filled seed.Filled) {
	path = os.Getenv(storeOfPages)
	if path == "" {
		path = filepath.Join(b.TempDir(), "pages.db")
	}
	if printed, err := os.ReadFile(path + ".json"); err == nil {
		if err := json.Unmarshal(printed, &filled); err != nil {
			b.Fatal(err)
		}
		return path, filled
	}
	if _, err := os.Stat(path); err == nil {
		return path, filledBefore(b, path)
	}
	filled, err := seed.Fill(b.Context(), path, dashboardMemories)
	if err != nil {
		b.Fatal(err)
	}
	return path, filled
}

// filledBefore finds out what dashboardPaths needs to know about a store.
func filledBefore(b *testing.B, path string) (filled seed.Filled) {
	store, err := souvenir.Open(b.Context(), path, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	fail := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	most := 0
	for user, err := range store.Accounts().Users(b.Context()) {
		fail(err)
		view := store.As(souvenir.Access{User: user.ID})
		memories, err := view.Search(b.Context(), souvenir.Query{Sort: souvenir.SortUpdatedDesc, Limit: 1})
		fail(err)
		projects, err := view.Projects(b.Context())
		fail(err)
		files, err := view.FilePage(b.Context(), souvenir.FileQuery{Limit: 1})
		fail(err)
		if memories.Total <= most || len(projects) == 0 || len(files.Files) == 0 {
			continue
		}
		most = memories.Total
		filled.User, filled.UserID, filled.Memory = user.Name, user.ID, memories.Hits[0].ID
		filled.Project, filled.File = projects[0].ID, files.Files[0].ID
	}
	return filled
}

// pageRow is the row of a page.
type pageRow struct {
	pattern    string
	size       int
	took       []time.Duration // the first use comes first
	processor  []time.Duration
	statements int64 // the minimum
}

// open opens the page once.
func (r *pageRow) open(b *testing.B, at *httptest.Server, path, session string, read *counts) {
	before, began, used := read.statements.Load(), time.Now(), processorTime(b)
	r.size = len(openPage(b, at, path, session))
	r.took, r.processor = append(r.took, time.Since(began)), append(r.processor, processorTime(b)-used)
	if n := read.statements.Load() - before; len(r.took) == 1 || n < r.statements {
		r.statements = n
	}
}

func (r *pageRow) print() {
	n := (len(r.took) - 1) / 2
	later, processor := slices.Sorted(slices.Values(r.took[1:1+n])), slices.Sorted(slices.Values(r.processor[1:1+n]))
	written := slices.Sorted(slices.Values(r.processor[1+n:]))
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	fmt.Printf("| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %d |\n", r.pattern, float64(r.size)/1000, ms(r.took[0]),
		ms(later[0]), ms(later[n/2]), ms(processor[0]), ms(written[n/2]), r.statements)
}

// processorTime returns the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
