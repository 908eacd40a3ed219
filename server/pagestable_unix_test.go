//go:build unix

package server_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/seed"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// storeOfPages names the environment variable with the file of a store for the table of pages. A file that is not
// there is made and kept, so that the next run need not fill one.
const storeOfPages = "SOUVENIR_PAGES_STORE"

// BenchmarkPagesTable prints a table of all pages of a signed-in user at 100,000 memories: how long they are, the time
// on the server and loopback, the processor time, and the statements of each:
//
//	SOUVENIR_PAGES_STORE=/tmp/pages.db go test ./server -run '^$' -bench PagesTable -benchtime 15x -timeout 1h
//
// The first use of each page, after those above it, is apart: least, median and the least processor time are of the
// others, at least three.
func BenchmarkPagesTable(b *testing.B) {
	path, filled := filledStore(b)
	var statements atomic.Int64
	ctx := db.WithOpener(b.Context(), countStatements(path, &statements))
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
	fmt.Println("| page | KB | first, ms | least, ms | median, ms | processor, ms | statements |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, pattern := range paths {
		path := pattern
		if known := all[pattern]; known != "" {
			path = known
		}
		row := pageRow{pattern: pattern}
		row.open(b, at, path, session.Value, &statements)
		for range max(b.N, 3) {
			row.open(b, at, path, session.Value, &statements)
		}
		row.print()
	}
}

// listPaths are the lists of memories that read much, in the order in which they are opened.
func listPaths() []string {
	return []string{"/{$}", "/memories", "/memories?tag=week-7", "/memories?tag=urgent", "/memories?tag=database&page=90",
		"/memories?key=source", "/memories?key=source&value=mail", "/memories?key=confidence", "/memories?module=tiles",
		"/memories?event_type=decision", "/memories?state=archived", "/memories?archived=hide",
		"/memories?importance=high",
		"/memories?sort=" + url.QueryEscape(string(souvenir.SortCreatedAsc)),
		"/memories?page=1000", "/memories?page=3900",
		"/memories?q=tiles", "/memories?q=tiles&tag=urgent"}
}

// filledStore returns a store of 100,000 memories with as many recorded calls as it keeps.
func filledStore(b *testing.B) (path string, filled seed.Filled) {
	path = os.Getenv(storeOfPages)
	if path == "" {
		path = filepath.Join(b.TempDir(), "pages.db")
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

// filledBefore finds out about a store what dashboardPaths has to know.
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
	took       []time.Duration // the first use first
	processor  []time.Duration
	statements int64 // the least
}

// open opens the page once.
func (r *pageRow) open(b *testing.B, at *httptest.Server, path, session string, statements *atomic.Int64) {
	before, began, used := statements.Load(), time.Now(), processorTime(b)
	r.size = len(openPage(b, at, path, session))
	r.took, r.processor = append(r.took, time.Since(began)), append(r.processor, processorTime(b)-used)
	if n := statements.Load() - before; len(r.took) == 1 || n < r.statements {
		r.statements = n
	}
}

func (r *pageRow) print() {
	later, processor := slices.Sorted(slices.Values(r.took[1:])), slices.Sorted(slices.Values(r.processor[1:]))
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	fmt.Printf("| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %d |\n", r.pattern, float64(r.size)/1000, ms(r.took[0]),
		ms(later[0]), ms(later[len(later)/2]), ms(processor[0]), r.statements)
}

// processorTime is what this process has used of the processors.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// countStatements opens a store's file so that the statements of its transactions are counted.
func countStatements(path string, statements *atomic.Int64) db.Opener {
	return func(ctx context.Context, o db.Opening) (db.DB, error) {
		engine, err := sqlite.Open(ctx, sqlite.Config{Path: path, ApplicationID: 0x5375766e, Readers: o.Readers,
			Logger: o.Logger, Migrations: sqlite.Migrations(), Fill: o.Fill, BeforeMigrations: kernel.MarkDamage,
			Prepare: kernel.KeepHashes})
		return countingDB{engine, statements}, err
	}
}

type countingDB struct {
	db.DB
	statements *atomic.Int64
}

func (d countingDB) Read(ctx context.Context, fn func(db.Tx) error) error {
	return d.DB.Read(ctx, func(tx db.Tx) error { return fn(countingTx{tx, d.statements}) })
}

func (d countingDB) Write(ctx context.Context, fn func(db.Tx) error) error {
	return d.DB.Write(ctx, func(tx db.Tx) error { return fn(countingTx{tx, d.statements}) })
}

type countingTx struct {
	db.Tx
	statements *atomic.Int64
}

func (tx countingTx) Exec(query string, args ...any) (db.Result, error) {
	tx.statements.Add(1)
	return tx.Tx.Exec(query, args...)
}

func (tx countingTx) Query(query string, args ...any) (db.Rows, error) {
	tx.statements.Add(1)
	return tx.Tx.Query(query, args...)
}

func (tx countingTx) QueryRow(query string, args ...any) db.Row {
	tx.statements.Add(1)
	return tx.Tx.QueryRow(query, args...)
}

func (tx countingTx) Each(fn func(db.Rows) error, query string, args ...any) error {
	tx.statements.Add(1)
	return tx.Tx.Each(fn, query, args...)
}
