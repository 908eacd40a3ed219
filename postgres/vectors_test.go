package postgres_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

// places embeds each text at a position that depends on its bytes.
var places = souvenir.EmbedderFunc("places", 24, func(_ context.Context, _ souvenir.Purpose,
	texts []string) ([][]float32, error) {
	all := make([][]float32, len(texts))
	for i, text := range texts {
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(text))
		random := rand.New(rand.NewPCG(sum.Sum64(), 1))
		for range 24 {
			all[i] = append(all[i], float32(random.NormFloat64()))
		}
	}
	return all, nil
})

// withoutIndex searches in the database.
var withoutIndex = souvenir.Options{Embedder: places, IndexMemory: -1}

// vectors creates the index of vectors in a schema, for all partitions. Without pgvector it skips the test.
func vectors(t *testing.T, address string) {
	t.Helper()
	pgtest.NotOnCitus(t, "an index of vectors is not supported yet")
	there := pgtest.Query(t, address, `SELECT coalesce(max(default_version), '') FROM pg_available_extensions
		WHERE name = 'vector'`)[0]
	if there == "" || strings.HasPrefix(there, "0.") && slices.Contains([]string{"1", "2", "3", "4", "5", "6", "7"},
		strings.Split(there, ".")[1]) {
		t.Skipf("the server has pgvector %q; install 0.8 or newer", there)
	}
	script, err := os.ReadFile("vectors.sql")
	if err != nil {
		t.Fatal(err)
	}
	execute(t, address, string(script))
	execute(t, address,
		`CREATE OR REPLACE FUNCTION near_from() RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 0::bigint'`)
}

func ferries(from, n int) []souvenir.NewMemory {
	all := make([]souvenir.NewMemory, n)
	for i := range all {
		all[i] = souvenir.NewMemory{Content: fmt.Sprintf("The ferry %d leaves at pier %d.", from+i, (from+i)%60),
			Tags: []string{fmt.Sprint("tag", i%2)}}
	}
	return all
}

// shown returns the results of a search, with scores.
func shown(t *testing.T, s *souvenir.Store, q souvenir.Query, way souvenir.SearchPlan) string {
	t.Helper()
	q.Explain = true
	r, err := s.Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if r.Plan != way {
		t.Errorf("%+v: got the way %q, want %q", q, r.Plan, way)
	}
	lines := []string{fmt.Sprint(r.Total, " found")}
	for _, h := range r.Hits {
		lines = append(lines, fmt.Sprintf("%s %.5f %.5f", h.Content, h.Score, h.Parts.Vector))
	}
	return strings.Join(lines, "\n")
}

var searches = map[string]souvenir.Query{
	"words that some have":  {Text: "pier 17"},
	"words that all have":   {Text: "the ferry leaves", Limit: 20},
	"words that none has":   {Text: "zeppelin"},
	"a vector":              {Vector: slices.Repeat([]float32{1}, 24)},
	"the second page":       {Text: "ferry 12", Offset: 20},
	"a filter of the half":  {Text: "pier 9", Tags: []string{"tag1"}},
	"a filter of few":       {Text: "pier 9", Keys: []string{"one"}},
	"relevant ones by time": {Text: "ferry 44", Sort: souvenir.SortCreatedDesc},
}

// TestTheIndexOfVectorsFindsWhatAComparisonFinds also changes stored data, before and after it is indexed.
func TestTheIndexOfVectorsFindsWhatAComparisonFinds(t *testing.T) {
	address := pgtest.Address(t)
	scans := open(t, address, &withoutIndex)
	stored, err := scans.AddMemories(t.Context(), ferries(0, 700), nil)
	if err != nil {
		t.Fatal(err)
	}
	vectors(t, address)
	s := open(t, address, &withoutIndex)
	shown(t, s, souvenir.Query{Text: "ferry"}, souvenir.PlanScan) // nothing is in the index yet
	held := open(t, address, &souvenir.Options{Embedder: places})
	shown(t, held, souvenir.Query{Text: "ferry"}, souvenir.PlanMemory)
	check := func(when string) {
		t.Helper()
		for name, q := range searches {
			way := souvenir.PlanVectorIndex
			if q.Sort != "" || q.Keys != nil { // more than the index covers, or too few of them
				way = souvenir.PlanScan
			}
			want := shown(t, held, q, souvenir.PlanMemory)
			if got := shown(t, scans, q, souvenir.PlanScan); got != want {
				t.Errorf("%s, %s: comparing all: got\n%s\nwant\n%s", when, name, got, want)
			}
			if got := shown(t, s, q, way); got != want {
				t.Errorf("%s, %s: by the index of vectors: got\n%s\nwant\n%s", when, name, got, want)
			}
		}
	}
	maintain := func() {
		t.Helper()
		if err := s.Upkeep().StoreIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	maintain()
	check("filled")
	content := "A zeppelin waits at pier 17."
	if _, err := s.UpdateMemory(t.Context(), stored[7].ID, souvenir.MemoryUpdate{Content: &content}); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteMemory(t.Context(), stored[17].ID, nil); err != nil {
		t.Fatal(err)
	}
	one := souvenir.NewMemory{Content: "Another zeppelin.", Key: "one"}
	if _, err := s.PutMemory(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddMemories(t.Context(), ferries(1000, 400), nil); err != nil {
		t.Fatal(err)
	}
	check("after changes")
	maintain()
	if got := pgtest.Query(t, address, `SELECT count(*) FROM passage_near WHERE embedding IS NOT NULL`)[0]; got != "1100" {
		t.Errorf("after upkeep: got %s passages in the index, want 1100", got)
	}
	check("filled again")
	execute(t, address, `UPDATE passage SET vector = (SELECT vector FROM passage ORDER BY id LIMIT 1)
		WHERE id IN (SELECT id FROM passage ORDER BY id DESC LIMIT 300)`)
	check("with other vectors")
	maintain()
	if got := pgtest.Query(t, address, `SELECT count(*) FROM passage_near WHERE embedding IS NULL`)[0]; got != "0" {
		t.Errorf("after upkeep: got %s passages without their new vector, want 0", got)
	}
	check("with other vectors, filled")
	execute(t, address, `UPDATE passage SET vector = NULL, profile_id = NULL
		WHERE id IN (SELECT id FROM passage ORDER BY id LIMIT 20)`)
	check("some without a vector")
	execute(t, address, `DROP TABLE passage_near, near_partition; DROP FUNCTION passage_near_changed() CASCADE`)
	s = open(t, address, &withoutIndex)
	shown(t, s, souvenir.Query{Text: "ferry"}, souvenir.PlanScan)
}

func TestExplainSaysWhichWayASearchTook(t *testing.T) {
	address := pgtest.Address(t)
	options := souvenir.Options{Embedder: places}
	writer := open(t, address, &options)
	if _, err := writer.AddMemories(t.Context(), ferries(0, 600), nil); err != nil {
		t.Fatal(err)
	}
	if err := writer.Upkeep().StoreIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := open(t, address, &options)
	first := shown(t, s, souvenir.Query{Text: "pier 17"}, souvenir.PlanSegments)
	if got := shown(t, s, souvenir.Query{Text: "pier 17"}, souvenir.PlanMemory); got != first {
		t.Errorf("the second search: got\n%s\nwant as the first one\n%s", got, first)
	}
	if r, err := s.Search(t.Context(), souvenir.Query{Text: "pier 17"}); err != nil || r.Plan != "" {
		t.Errorf("a search without an explanation: got the way %q, %v; want none", r.Plan, err)
	}
}

// The index of vectors hides nothing from a server behind the second wall, and shows nothing to others.
func TestTheIndexOfVectorsIsBehindTheWall(t *testing.T) {
	address := pgtest.Address(t)
	s := open(t, address, &withoutIndex)
	if _, err := s.As(souvenir.Access{User: "ann"}).AddMemories(t.Context(), ferries(0, 700), nil); err != nil {
		t.Fatal(err)
	}
	vectors(t, address)
	wall, err := os.ReadFile("wall.sql")
	if err != nil {
		t.Fatal(err)
	}
	runtime := pgtest.Walled(t, address, string(wall))
	behind := open(t, runtime, &withoutIndex)
	if err := behind.Upkeep().StoreIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	q := souvenir.Query{Text: "pier 17"}
	want := shown(t, s.As(souvenir.Access{User: "ann"}), q, souvenir.PlanScan)
	if got := shown(t, behind.As(souvenir.Access{User: "ann"}), q, souvenir.PlanVectorIndex); got != want {
		t.Errorf("behind the wall: got\n%s\nwant\n%s", got, want)
	}
	if got := pgtest.Query(t, runtime, `SELECT id::text FROM passage_near`); len(got) != 0 {
		t.Errorf("without a caller: got %d vectors, want none", len(got))
	}
	if r, err := behind.As(souvenir.Access{User: "ben"}).Search(t.Context(), q); err != nil || len(r.Hits) != 0 {
		t.Errorf("another user: got %d hits, %v; want none", len(r.Hits), err)
	}
}
