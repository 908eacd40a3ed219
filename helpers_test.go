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
	"sync/atomic"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/db"
	"github.com/souvenir-ai/souvenir/internal/foldname"
	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/sqlite"
	"github.com/souvenir-ai/souvenir/internal/storefile"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestMain(m *testing.M) { os.Exit(longtest.MainWithCheapPasswords(m)) }

// wordSize is the length of wordEmbedder's vectors.
const wordSize = 32

// wordEmbedder is a small deterministic model: each word counts in one dimension.
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

// openWords opens a store, with wordEmbedder unless the options name another one, and closes it at the end of the test.
// A new file is a copy of an empty store, because making the schema is most of the work. An empty path means a new
// temporary file.
func openWords(tb testing.TB, path string, o Options) *Store {
	tb.Helper()
	if path == "" {
		path = filepath.Join(tb.TempDir(), "store.db")
	}
	if o.Embedder == nil {
		o.Embedder = wordEmbedder("words-1")
		plain := path != ":memory:" && !o.ReadOnly && o.MasterKey.IsZero()
		if _, err := os.Lstat(path); plain && errors.Is(err, fs.ErrNotExist) {
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

// emptyStore returns the bytes of a file of an empty store.
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
	file, err := sqlite.Open(context.Background(), storefile.Config(path, sealedClock))
	if err != nil {
		return nil, err
	}
	err = file.Write(context.Background(), func(tx db.Tx) error { // each test has its own clock
		_, err := tx.Exec(`DELETE FROM setting WHERE key = ?`, settingClock)
		return err
	})
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func mustAdd(tb testing.TB, s *Store, m NewMemory) StoredMemory {
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

// rowsOf returns everything a store's file holds, as text. Two equal results mean that nothing was changed in between.
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
	rows = slices.DeleteFunc(rows, func(row string) bool { // background work updates the time by itself
		return strings.Contains(row, "'"+settingClock+"'") || strings.Contains(row, "'"+settingAhead+"'")
	})
	return strings.Join(rows, "\n")
}

// everyRow is one query of all rows of all tables. As one statement, a connection can cache it.
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
	// The worker records the latest time in the background.
	queries = append(queries, `SELECT 'setting ' || key || ',' || value FROM setting WHERE key NOT IN ('`+settingClock+
		`', '`+settingAhead+`')`)
	queries = append(queries, `SELECT * FROM (SELECT 'passage_text ' || rowid FROM passage_text ORDER BY rowid)`)
	return strings.Join(queries, " UNION ALL "), err
})

// addAccount adds a user with an account or, if the name is empty, without one.
func addAccount(t *testing.T, s *Store, user, name string) {
	t.Helper()
	if _, err := s.As(Access{User: user}).AddMemories(t.Context(), nil,
		nil); err != nil { // a user exists from the first write on
		t.Fatal(err)
	}
	if name == "" {
		return
	}
	err := s.db.Write(t.Context(), func(tx db.Tx) error {
		// As an import does: the name may look like the id of another user.
		_, err := tx.Exec(`UPDATE users SET uid_key = NULL`)
		if err == nil {
			_, err = tx.Exec(`UPDATE users SET name = ?, name_key = ? WHERE uid = ?`, name, foldname.Key(name), user)
		}
		if err == nil {
			err = kernel.FillUserKeys(tx)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// share makes a user a member of a project of the view's user, as an operator does.
func share(t *testing.T, owner *Store, project, user string, role MemberRole) {
	t.Helper()
	operator := &Store{shared: owner.shared, access: Access{User: LocalUser}, operator: true}
	if _, err := operator.AddMember(t.Context(),
		NewMember{Project: ProjectRef{ID: owner.access.User + "/" + project}, User: user, Role: role}); err != nil {
		t.Fatal(err)
	}
}

// recordCalls records calls and waits until they are in the file.
func recordCalls(t *testing.T, s *Store, calls ...NewActivity) {
	t.Helper()
	for _, n := range calls {
		if err := s.Upkeep().RecordActivity(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.activity.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// movingClock is a clock that a test sets. The background worker reads it, too.
type movingClock struct{ micros atomic.Int64 }

func newMovingClock(start time.Time) *movingClock {
	c := new(movingClock)
	c.micros.Store(start.UnixMicro())
	return c
}

func (c *movingClock) Now() time.Time       { return time.UnixMicro(c.micros.Load()).UTC() }
func (c *movingClock) Pass(d time.Duration) { c.micros.Add(d.Microseconds()) }

// Tick advances the clock by an hour and returns it, so that no two results are the same.
func (c *movingClock) Tick() time.Time {
	return time.UnixMicro(c.micros.Add(time.Hour.Microseconds())).UTC()
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
