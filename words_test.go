package souvenir

import (
	"context"
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
)

// wordSize is the length of wordEmbedder's vectors.
const wordSize = 32

// wordEmbedder is a small model that is the same everywhere: each word counts in one dimension.
func wordEmbedder(model string) Embedder {
	return EmbedderFunc(model, wordSize, func(ctx context.Context, _ Purpose, texts []string) ([][]float32, error) {
		vectors := make([][]float32, len(texts))
		for i, t := range texts {
			vectors[i] = wordVector(t)
		}
		return vectors, ctx.Err()
	})
}

func wordVector(t string) []float32 {
	v := make([]float32, wordSize)
	for _, word := range strings.Fields(strings.ToLower(t)) {
		h := fnv.New32a()
		h.Write([]byte(word))
		v[h.Sum32()%wordSize]++
	}
	return v
}

// openWords opens a store with wordEmbedder, unless the options have another one, and closes it at the end of the test.
// A new file is a copy of an empty one, as making the schema is most of the work. An empty path is a file of the test's
// own.
func openWords(tb testing.TB, path string, o Options) *Store {
	tb.Helper()
	if path == "" {
		path = filepath.Join(tb.TempDir(), "store.db")
	}
	if o.Embedder == nil {
		o.Embedder = wordEmbedder("words-1")
		if _, err := os.Lstat(path); path != ":memory:" && !o.ReadOnly && errors.Is(err, fs.ErrNotExist) {
			empty, err := emptyStore()
			if err != nil {
				tb.Fatal(err)
			}
			if err := os.WriteFile(path, empty, 0o600); err != nil {
				tb.Fatal(err)
			}
		}
	}
	s, err := Open(context.Background(), path, &o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error("close:", err)
		}
	})
	return s
}

// emptyStore is the content of a file in which nothing was stored.
var emptyStore = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "souvenir-empty-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "empty.db")
	s, err := Open(context.Background(), path, &Options{Embedder: wordEmbedder("words-1"), Now: sealedClock})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	file, err := sqlite.Open(context.Background(), fileConfig(path, sealedClock))
	if err != nil {
		return nil, err
	}
	err = file.Write(context.Background(), func(tx db.Tx) error { // the clocks of tests differ
		_, err := tx.Exec(`DELETE FROM setting WHERE key = ?`, settingClock)
		return err
	})
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func mustAdd(tb testing.TB, s *Store, m NewMemory) Stored {
	tb.Helper()
	added, err := s.AddMemory(context.Background(), m)
	if err != nil {
		tb.Fatal(err)
	}
	return added
}

func mustAddCollection(tb testing.TB, s *Store, c NewCollection) {
	tb.Helper()
	if _, err := s.AddCollection(context.Background(), c); err != nil {
		tb.Fatal(err)
	}
}

// rowsOf reads everything that a store's file holds, as text: two equal answers mean that nothing was changed between
// them.
func rowsOf(tb testing.TB, s *Store) string {
	tb.Helper()
	query, err := everyRow()
	if err != nil {
		tb.Fatal(err)
	}
	var rows []string
	err = s.db.Read(context.Background(), func(tx db.Tx) error {
		rows, err = db.Column[string](tx, query)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	rows = slices.DeleteFunc(rows, func(row string) bool { // background work notes the time by itself
		return strings.Contains(row, "'"+settingClock+"'") || strings.Contains(row, "'"+settingAhead+"'")
	})
	return strings.Join(rows, "\n")
}

// everyRow is one query of all rows of all tables, of which a connection keeps the statement.
var everyRow = sync.OnceValues(func() (string, error) {
	ctx := context.Background()
	s, err := Open(ctx, ":memory:", &Options{Embedder: wordEmbedder("words-1")})
	if err != nil {
		return "", err
	}
	defer s.Close()
	var queries []string
	err = s.db.Read(ctx, func(tx db.Tx) error {
		queries, err = db.Column[string](tx, `
			SELECT 'SELECT ''' || t.name || ' '' || ' || group_concat('quote("' || c.name || '")',
			' || '','' || ') || ' FROM "' || t.name || '"'
			FROM sqlite_schema t, pragma_table_info(t.name) c
			WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND t.name NOT LIKE 'passage_text%' AND t.name <> 'setting'
			GROUP BY t.name`)
		return err
	})
	// The worker writes down in the background how far the clock has come.
	queries = append(queries, `SELECT 'setting ' || key || ',' || value FROM setting WHERE key NOT IN ('`+settingClock+
		`', '`+settingAhead+`')`)
	queries = append(queries, `SELECT * FROM (SELECT 'passage_text ' || rowid FROM passage_text ORDER BY rowid)`)
	return strings.Join(queries, " UNION ALL "), err
})
