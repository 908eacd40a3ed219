package systemtest

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/testing/longtest"
)

func TestDamagedFilesGiveErrorsAndNeverPanics(t *testing.T) {
	longtest.Only(t)
	in := emptyInFile(t)
	filled := openWords(t, in, Options{})
	many := make([]NewMemory, 200)
	for i := range many {
		many[i] = NewMemory{Content: fmt.Sprintf("memory %d tells of w%d and of much else besides", i, i),
			Tags: []string{fmt.Sprint("t", i%5)}}
	}
	if _, err := filled.AddMemories(t.Context(), many, nil); err != nil {
		t.Fatal(err)
	}
	if err := filled.Close(); err != nil {
		t.Fatal(err)
	}
	store := readFile(t, in.where())
	step := 3
	if !longtest.All() {
		step = 8
	}
	if !longtest.On() {
		step = 40
	}
	damaged := map[string][]byte{}
	const page = 4096
	for n := step; n < len(store)/page; n += step { // without the first page, which Open refuses
		flipped := bytes.Clone(store)
		for i := n*page + n%7; i < (n+1)*page; i += 61 {
			flipped[i] ^= 0xa5
		}
		damaged[fmt.Sprint("bytes flipped in page ", n)] = flipped
		zeroed := bytes.Clone(store)
		clear(zeroed[n*page : (n+1)*page])
		damaged[fmt.Sprint("page zeroed: ", n)] = zeroed
		if n%8 == 0 {
			damaged[fmt.Sprint("cut off at page ", n)] = store[:n*page]
			damaged[fmt.Sprint("cut off within page ", n)] = store[:n*page+1000]
		}
	}
	refused := 0
	for name, content := range damaged {
		path := filepath.Join(t.TempDir(), "damaged.db")
		writeFile(t, path, content)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		for _, memory := range []int64{0, -1} {
			refused += useDamaged(ctx, t, name, path, memory)
		}
		cancel()
	}
	if refused == 0 {
		t.Errorf("the damage was refused %v times, want at least once", refused)
	}
}

// useDamaged calls methods on a damaged file and returns how many reported damage. A method that does not read the
// damaged part may succeed.
func useDamaged(ctx context.Context, t *testing.T, name, path string, indexMemory int64) (refused int) {
	t.Helper()
	step := "open"
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%s: %s panics: %v, want nil", name, step, r)
		}
	}()
	note := func(err error) {
		if err == nil {
			return
		}
		refused++
		if constraint := strings.Contains(err.Error(), "constraint"); !constraint && !isAny(err, ErrCorrupt, ErrNotFound) {
			t.Errorf("%s: %s gives %v; want ErrCorrupt", name, step, err)
		}
	}
	s, err := Open(ctx, path, &Options{Embedder: wordEmbedder("words-1"), IndexMemory: indexMemory})
	note(err)
	if err != nil {
		return refused
	}
	defer s.Close()
	step = "search by metadata"
	if r, err := s.Search(ctx, Query{Filter: Filter{"k": "v"}}); err == nil && len(r.Hits) > 0 {
		step = "restore"
		_, err = s.RestoreRevision(ctx, r.Hits[0].ID, 1)
		note(err)
		step = "revisions of what was found"
		_, err = s.Revisions(ctx, r.Hits[0].ID)
		note(err)
	}
	step = "search"
	_, err = s.Search(ctx, Query{Text: "memory w17 besides"})
	note(err)
	step = "filtered search"
	_, err = s.Search(ctx, Query{Tags: []string{"t3"}, Filter: Filter{"kind": "x"}})
	note(err)
	step = "listing"
	id := ""
	for m, err := range s.Memories(ctx, MemoryList{}) {
		note(err)
		id = m.ID
	}
	step = "tags"
	_, err = s.Insights().Tags(ctx)
	note(err)
	step = "revisions"
	_, err = s.Revisions(ctx, id)
	note(err)
	step = "collections"
	_, err = s.Collections(ctx)
	note(err)
	step = "add"
	_, err = s.AddMemory(ctx, NewMemory{Content: "one more", Tags: []string{"t3"}})
	note(err)
	step = "update"
	_, err = s.UpdateMemory(ctx, id, MemoryUpdate{Content: content("changed")})
	note(err)
	step = "delete"
	note(s.DeleteMemory(ctx, id, nil))
	return refused
}

// SQLite cannot see this damage: the file is valid, but the values in its rows are not.
func TestDamagedRowsGiveErrorsAndNeverPanics(t *testing.T) {
	longtest.Only(t)
	for i, damage := range []string{
		`UPDATE memory SET metadata = '{'`,
		`UPDATE memory SET metadata = '[]'`,
		`UPDATE memory SET metadata = 'null'`,
		`UPDATE passage SET start = 1000000`,
		`UPDATE passage SET start = -5`,
		`UPDATE passage SET length = 1000000`,
		`UPDATE passage SET length = -1`,
		`UPDATE passage SET start = 1, length = 2`, // within a character
		`UPDATE memory SET content = CAST(x'ff' AS TEXT)`,
		`UPDATE memory_revision SET attributes = 'x'`,
		`UPDATE memory_revision SET attributes = '{"related_memory_ids":[7]}'`,
		`DELETE FROM setting`,
		`DELETE FROM change`,
		`DELETE FROM passage_text`,
		`UPDATE partition SET passages = -3, memories = -7`,
		`UPDATE partition SET next_passage = 0`,
	} {
		if !longtest.Part(i, 1, 4) {
			continue
		}
		t.Run(damage, func(t *testing.T) {
			for _, indexMemory := range []int64{0, -1} {
				in := emptyInFile(t)
				s := openWords(t, in, Options{})
				first := mustAdd(t, s, NewMemory{Content: "ä memory w17 besides", Tags: []string{"t3"}})
				mustAdd(t, s, NewMemory{Content: "ö memory besides", Related: []string{first.ID}})
				if _, err := s.UpdateMemory(t.Context(), first.ID,
					MemoryUpdate{ShownMetadata: map[string]any{"k": "v"}}); err != nil {
					t.Fatal(err)
				}
				mustExec(t, s, damage)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				useDamaged(t.Context(), t, damage, in.where(), indexMemory)
			}
		})
	}
}
