//go:build unix

package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/seed"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
	"github.com/souvenir-ai/souvenir/server"
	"github.com/souvenir-ai/souvenir/server/internal/servertest"
)

// snapshotDB counts the read transactions that run statements.
type snapshotDB struct {
	db.DB
	reads *atomic.Int64
}

func (d snapshotDB) Read(ctx context.Context, fn func(db.Tx) error) error {
	return d.DB.Read(ctx, func(tx db.Tx) error {
		var read counts
		err := fn(countingTx{tx, &read})
		if read.statements.Load() > 0 {
			d.reads.Add(1)
		}
		return err
	})
}

// A page shows one moment: it is read in one snapshot, after the one that checks the session.
func TestPagesReadOneSnapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pages.db")
	filled, err := seed.Fill(t.Context(), path, 40)
	if err != nil {
		t.Fatal(err)
	}
	var reads atomic.Int64
	open := countReads(path, new(counts))
	ctx := db.WithOpener(t.Context(), func(ctx context.Context, o db.Opening) (db.DB, error) {
		engine, err := open(ctx, o)
		return snapshotDB{engine, &reads}, err
	})
	store, err := souvenir.Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	at := httptest.NewServer(server.New(store, &server.Options{PublicURL: servertest.PublicAt}))
	defer at.Close()
	session, err := store.Accounts().AddSignIn(t.Context(), souvenir.NewSignIn{User: filled.User})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) int64 {
		before := reads.Load()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(&http.Cookie{Name: "auth_token", Value: session.Value})
		answer, err := at.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: got status %d, want 200", path, answer.StatusCode)
		}
		return reads.Load() - before
	}
	paths := dashboardPaths(filled)
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
