//go:build unix

package server_test

import (
	"context"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/seed"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// snapshotDB counts the read transactions that run statements, and the open ones.
type snapshotDB struct {
	db.DB
	reads, open *atomic.Int64
}

func (d snapshotDB) Read(ctx context.Context, fn func(db.Tx) error) error {
	d.open.Add(1)
	defer d.open.Add(-1)
	return d.DB.Read(ctx, func(tx db.Tx) error {
		var read counts
		err := fn(countingTx{tx, &read})
		if read.statements.Load() > 0 {
			d.reads.Add(1)
		}
		return err
	})
}

// openedSnapshots is a server whose reads are counted.
type openedSnapshots struct {
	filled      seed.Filled
	store       *souvenir.Store
	at          *httptest.Server
	session     string
	reads, open atomic.Int64
}

// openSnapshots serves a small store to a signed-in user.
func openSnapshots(t *testing.T, options *souvenir.Options) *openedSnapshots {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pages.db")
	o := &openedSnapshots{}
	var err error
	if o.filled, err = seed.Fill(t.Context(), path, 40); err != nil {
		t.Fatal(err)
	}
	open := countReads(path, new(counts))
	ctx := db.WithOpener(t.Context(), func(ctx context.Context, opening db.Opening) (db.DB, error) {
		engine, err := open(ctx, opening)
		return snapshotDB{engine, &o.reads, &o.open}, err
	})
	if o.store, err = souvenir.Open(ctx, path, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.store.Close() })
	o.at = httptest.NewServer(server.New(o.store, &server.Options{PublicURL: servertest.PublicAt}))
	t.Cleanup(o.at.Close)
	session, err := o.store.Accounts().AddSignIn(t.Context(), souvenir.NewSignIn{User: o.filled.User})
	if err != nil {
		t.Fatal(err)
	}
	o.session = session.Value
	return o
}

// page returns a page.
func (o *openedSnapshots) page(t *testing.T, path string) string {
	t.Helper()
	return openPage(t, o.at, path, o.session)
}

// searchPaths returns the addresses of all pages that search.
func searchPaths(filled seed.Filled) map[string]string {
	project := "/projects/" + filled.UserID + "/" + filled.Project
	paths := map[string]string{}
	for _, path := range []string{"/memories?q=tiles", "/memories?q=tiles&page=900", "/find?q=tiles",
		"/memories/compare?q=tiles", "/memories/found?seek=tiles", "/context?query=tiles",
		project + "/context?query=tiles", project + "/memories?q=tiles", "/files/" + filled.File + "?find=tiles",
		"/memories/" + filled.Memory + "/similar"} {
		paths[path] = path
	}
	return paths
}

// A page shows one moment: it is read in one snapshot, after the one that checks the session.
func TestPagesReadOneSnapshot(t *testing.T) {
	longtest.Only(t)
	o := openSnapshots(t, nil)
	get := func(path string) int64 {
		before := o.reads.Load()
		o.page(t, path)
		return o.reads.Load() - before
	}
	paths := dashboardPaths(o.filled)
	maps.Copy(paths, searchPaths(o.filled))
	for _, pattern := range longtest.Keys(paths, 1, 4) {
		get(paths[pattern])
		most := int64(2)
		if strings.HasSuffix(pattern, "/data") { // data for pictures, which takes long; project names are separate
			most = 3
		}
		got := most + 1
		for try := 0; try < 3 && got > most; try++ { // the store's own work may add some
			got = get(paths[pattern])
		}
		if got > most {
			t.Errorf("%s: got %d snapshots, want at most %d: 1 for the session, the rest for the page", pattern, got, most)
		}
	}
}

// modelsElsewhere are models of other programs. Each question is noted, and is answered once no snapshot is open.
type modelsElsewhere struct {
	souvenir.Embedder
	o                 *openedSnapshots
	embedded, ordered atomic.Int64
	held              atomic.Bool // a snapshot stayed open
}

func (m *modelsElsewhere) Model() string { return "elsewhere" }

// waits returns once no snapshot is open; the store's own work opens some, which end soon.
func (m *modelsElsewhere) waits() {
	if m.o == nil {
		return
	}
	for range 1000 {
		if m.o.open.Load() == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	m.held.Store(true)
}

func (m *modelsElsewhere) Embed(ctx context.Context, p souvenir.Purpose, texts []string) ([][]float32, error) {
	if p == souvenir.ForQuery {
		m.embedded.Add(1)
		m.waits()
	}
	return m.Embedder.Embed(ctx, p, texts)
}

// Rerank puts the hits in the opposite order.
func (m *modelsElsewhere) Rerank(_ context.Context, _ string, texts []string) ([]float64, error) {
	m.ordered.Add(1)
	m.waits()
	scores := make([]float64, len(texts))
	for i := range scores {
		scores[i] = float64(i)
	}
	return scores, nil
}

// No snapshot waits for a model of another program, and each is asked once for the same question.
func TestNoPageHoldsASnapshotForAModel(t *testing.T) {
	longtest.Only(t)
	m := &modelsElsewhere{Embedder: souvenir.Builtin()}
	o := openSnapshots(t, &souvenir.Options{Embedder: m, Reranker: m})
	if err := o.store.Upkeep().WaitEmbedded(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.o = o
	paths := searchPaths(o.filled)
	for _, pattern := range longtest.Keys(paths, 1, 2) {
		m.embedded.Store(0)
		m.held.Store(false)
		o.page(t, paths[pattern])
		if m.held.Load() || m.embedded.Load() != 1 {
			t.Errorf("%s: a snapshot stayed open: %t; the search text was embedded %d times, want once", pattern,
				m.held.Load(), m.embedded.Load())
		}
	}
	hits, err := o.store.As(souvenir.Access{User: o.filled.UserID}).Search(t.Context(),
		souvenir.Query{Text: "tiles", Limit: 5})
	if err != nil || len(hits.Hits) < 2 {
		t.Fatalf("got %d hits, %v; want at least 2", len(hits.Hits), err)
	}
	page, from := o.page(t, "/memories/found?seek=tiles"), 0
	for _, hit := range hits.Hits {
		at := strings.Index(page[from:], hit.ID)
		if at < 0 {
			t.Fatalf("the page does not show %s, want it in the order of the reranker", hit.ID)
		}
		from += at
	}
	if m.ordered.Load() == 0 {
		t.Error("the reranker was not asked, want it asked")
	}
}
