package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
	"github.com/souvenir-ai/souvenir/postgres"
)

func open(t *testing.T, address string, options *souvenir.Options) *souvenir.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), address, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func execute(t *testing.T, address, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func TestOtherStoresFindConfirmedWrites(t *testing.T) {
	address := pgtest.Address(t)
	one, other := open(t, address, nil), open(t, address, nil)
	for i := range 5 {
		content := fmt.Sprintf("The courier number %d comes on Monday.", i)
		stored, err := one.AddMemory(t.Context(), souvenir.NewMemory{Content: content})
		if err != nil {
			t.Fatal(err)
		}
		found, err := other.Search(t.Context(), souvenir.Query{Text: content})
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Hits) == 0 || found.Hits[0].ID != stored.ID {
			t.Errorf("search %d in the other store: got %d memories, want first %s", i, len(found.Hits), stored.ID)
		}
		one, other = other, one
	}
}

func TestALostCommitAnswerIsOutcomeUnknown(t *testing.T) {
	address := pgtest.Address(t)
	proxy := pgtest.NewProxy(t, address)
	s := open(t, proxy.Address, nil)
	_, err := s.AddMemory(t.Context(), souvenir.NewMemory{Content: "The courier comes on Monday."})
	for n := 0; n < 20 && err == nil; n++ { // the cut commit may be one of the background work
		proxy.Cut.Store(int32(pgtest.AfterCommit))
		_, err = s.AddMemory(t.Context(), souvenir.NewMemory{Content: fmt.Sprintf("The courier number %d comes.", n)})
	}
	if !errors.Is(err, souvenir.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "check before trying again") {
		t.Errorf(`a memory whose answer is lost: got %v, want %v and "check before trying again"`, err,
			souvenir.ErrOutcomeUnknown)
	}
}

// Two writers that do not see each other's rows still make only one of them.
func TestStoresThatPutTheSameKeyMakeOneMemory(t *testing.T) {
	address := pgtest.Address(t)
	stores := []*souvenir.Store{open(t, address, nil), open(t, address, nil)}
	const rounds = 20
	var wg sync.WaitGroup
	for i, s := range stores {
		wg.Go(func() {
			for n := range rounds {
				_, err := s.PutMemory(t.Context(), souvenir.NewMemory{Key: "same", Content: fmt.Sprint("version ", i, "/", n)})
				if err != nil {
					t.Errorf("store %d, round %d: %v", i, n, err)
				}
			}
		})
	}
	wg.Wait()
	var revisions []int
	for m, err := range stores[0].Memories(t.Context(), souvenir.MemoryList{}) {
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, m.Revision)
	}
	if fmt.Sprint(revisions) != fmt.Sprint([]int{2 * rounds}) {
		t.Errorf("revisions of the memories: got %v, want one memory with %d", revisions, 2*rounds)
	}
}

func TestUnreachableAddresses(t *testing.T) {
	for address, want := range map[string]error{
		"postgres://anna:secret@127.0.0.1:1/none?connect_timeout=2": souvenir.ErrBusy,
		"postgres://anna:secret@[::1:x/none":                        souvenir.ErrInternal,
	} {
		s, err := postgres.Open(t.Context(), address, nil)
		if !errors.Is(err, want) || s != nil {
			t.Errorf("%s: got %v, want %v", address, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error says the password: %v, want none in it", address, err)
		}
	}
}

func TestForeignAndNewerSchemas(t *testing.T) {
	pgtest.NotOnCitus(t, "schemas of tests have the tables already")
	address := pgtest.Address(t)
	if _, err := postgres.Open(t.Context(), address, &souvenir.Options{ReadOnly: true}); !errors.Is(err,
		souvenir.ErrNotFound) {
		t.Errorf("an empty schema, read-only: got %v, want %v", err, souvenir.ErrNotFound)
	}
	execute(t, address, `CREATE TABLE memory (id int)`)
	if _, err := postgres.Open(t.Context(), address, nil); !errors.Is(err, souvenir.ErrForeign) {
		t.Errorf("tables of another program: got %v, want %v", err, souvenir.ErrForeign)
	}
	execute(t, address, `DROP TABLE memory`)
	if err := open(t, address, nil).Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, address, &souvenir.Options{ReadOnly: true})
	if _, err := s.AddMemory(t.Context(), souvenir.NewMemory{Content: "tea"}); !errors.Is(err, souvenir.ErrReadOnly) {
		t.Errorf("a memory in a read-only store: got %v, want %v", err, souvenir.ErrReadOnly)
	}
	execute(t, address, `UPDATE schema_version SET version = 4711`)
	if _, err := postgres.Open(t.Context(), address, nil); !errors.Is(err, souvenir.ErrNewer) {
		t.Errorf("a newer schema: got %v, want %v", err, souvenir.ErrNewer)
	}
}

// The engine has no files, and methods for files say so.
func TestBackupsAreLeftToPostgreSQL(t *testing.T) {
	s := open(t, pgtest.Address(t), nil)
	if err := s.Upkeep().Backup(t.Context(), t.TempDir()+"/copy.db", nil); !errors.Is(err, souvenir.ErrInvalid) {
		t.Errorf("Backup: got %v, want %v", err, souvenir.ErrInvalid)
	}
}

// Several stores find the same texts that wait for vectors, and only one of them embeds each text.
func TestTextsThatWaitAreEmbeddedByOneStore(t *testing.T) {
	address := pgtest.Address(t)
	const texts = 300
	var broken atomic.Bool
	var embedded atomic.Int32
	embedder := souvenir.EmbedderFunc("counted", 2, func(_ context.Context, purpose souvenir.Purpose,
		batch []string) ([][]float32, error) {
		if broken.Load() {
			return nil, errors.New("not now")
		}
		if purpose == souvenir.ForDocument {
			embedded.Add(int32(len(batch)))
			time.Sleep(20 * time.Millisecond)
		}
		return slices.Repeat([][]float32{{1, 0}}, len(batch)), nil
	})
	broken.Store(true)
	var stores []*souvenir.Store
	for range 3 {
		stores = append(stores, open(t, address, &souvenir.Options{Embedder: embedder}))
	}
	batch := make([]souvenir.NewMemory, texts)
	for i := range batch {
		batch[i].Content = fmt.Sprintf("The courier number %d comes on Monday.", i)
	}
	for part := range slices.Chunk(batch, 100) {
		if _, err := stores[0].AddMemories(t.Context(), part, nil); err != nil {
			t.Fatal(err)
		}
	}
	broken.Store(false)
	var wg sync.WaitGroup
	for _, s := range stores {
		wg.Go(func() {
			if err := s.Upkeep().WaitEmbedded(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := embedded.Load(); got != texts {
		t.Errorf("texts embedded by three stores: got %d, want %d", got, texts)
	}
}
