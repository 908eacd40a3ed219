package souvenir

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir/internal/kernel"
	"github.com/souvenir-ai/souvenir/internal/longtest"
)

// randomly does so many things at random in a store, through its methods. What these refuse is left.
func randomly(t *testing.T, s *Store, r *rand.Rand, n int) {
	t.Helper()
	ctx := context.Background()
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	user := func() string { return pick("local", "ann", "bob", "ü/x", "東京") }
	project := func() string { return pick("", "", "p", "q", "ann/p", "bob/q", "Plan \"x\"") }
	var memories, files []string
	one := func(ids []string) string { return append(ids, "unknown")[r.IntN(max(1, len(ids)))] }
	words := func() string {
		return strings.Repeat(pick("kettle ", "Ümlaut\n\n# Head\n", "\x01\u2028\\\"", " \t", "東京の天気 ", "- [ ] T1 do\n"), 1+
			r.IntN(1+r.IntN(300)))
	}
	metadata := func() map[string]any {
		m := map[string]any{}
		for range r.IntN(4) {
			m[pick("a", "<b>", "", "n\n", "module_name")] = []any{nil, true, 1.5, json.Number("12345678901234567890.10"),
				"\u2028&", []any{1, map[string]any{"x": nil}}}[r.IntN(6)]
		}
		return m
	}
	own := func() []float32 { return []float32{r.Float32(), r.Float32() - 0.5, float32(r.IntN(2))} }
	for range n {
		v := s.As(Access{User: pick("ann", "bob", user())})
		var err error
		switch r.IntN(20) {
		case 0:
			_, err = v.AddProject(ctx, NewProject{ID: pick("p", "q", "r"), Name: pick("", "Plan \"x\"", "Zwei")})
		case 1:
			_, err = s.AddMember(ctx, NewMember{Project: ProjectRef{ID: pick("ann/", "bob/") + pick("p", "q", "r")},
				User: user(), Role: MemberRole(pick("reader", "writer", "owner"))})
		case 2:
			_, err = v.AddCollection(ctx,
				NewCollection{Name: pick("c", "own", "Ö"), Description: words()[:1], OwnVectors: r.IntN(2) == 0, VectorSize: 3})
		case 3, 4, 5, 6, 7:
			m := NewMemory{Content: words(), Collection: pick("", "c", "own"), ProjectID: project(), ShownMetadata: metadata(),
				State: pick("", "active", "done")}
			m.Tags = []string{pick("a", "ü b", "Z"), pick("a", "m\"", "9")}
			if m.Collection == "own" && r.IntN(3) > 0 {
				m.Embedding = own()
			}
			if r.IntN(2) == 0 {
				m.Related = []string{one(memories)}
			}
			if r.IntN(8) == 0 {
				m.EventType, m.RuleType = EventProjectRule, RuleType(pick("do", "dont"))
			}
			var added Stored
			if added, err = v.AddMemory(ctx, m); err == nil {
				memories = append(memories, added.ID)
			}
		case 8, 9, 10:
			change := metadata()
			change[pick("project_id", "importance", "tags", "related_memory_ids", "k")] = []any{nil, "p", "high", []any{"t"},
				[]any{one(memories)}}[r.IntN(5)]
			u := MemoryUpdate{ShownMetadata: change}
			if r.IntN(2) == 0 {
				u.Content = content(words())
			}
			_, err = v.UpdateMemory(ctx, one(memories), u)
		case 11:
			err = v.DeleteMemory(ctx, one(memories))
		case 12, 13:
			var added File
			f := NewFile{Filename: words(), ProjectID: project(), Tags: []string{pick("z", "y"), "a"}, Category: pick("", "c"),
				Description: words()[:1]}
			if r.IntN(2) == 0 {
				f.ProjectID, f.MemoryID = "", one(memories)
			}
			if added, err = v.AddFile(ctx, f, bytes.NewReader(pattern(r.IntN(2)*r.IntN(2*kernel.ChunkSize)))); err == nil {
				files = append(files, added.ID)
			}
		case 14:
			_, err = v.UpdateFile(ctx, one(files),
				FileUpdate{MemoryID: new(pick("", one(memories))), Tags: []string{pick("n", "o")}})
		case 15:
			err = v.DeleteFile(ctx, one(files))
		case 16:
			_, err = v.UpdatePreferences(ctx, metadata())
		case 17:
			_, err = s.Accounts().AddUser(ctx,
				NewUser{ID: pick("", user()), Name: pick("Ann", "Bob", "Œuvre"), Email: pick("", "a@b.example")})
		case 18:
			_, err = v.Accounts().AddToken(ctx, NewToken{Name: pick("t", "ü"), Projects: [][]string{nil, {"p"}}[r.IntN(2)]})
		case 19:
			if r.IntN(3) > 0 {
				continue
			}
			err = v.DeleteProject(ctx, ProjectRef{ID: project()}, &DeleteOptions{WithMemories: r.IntN(3) == 0})
		}
		if err != nil && !isAny(err, ErrInvalid, ErrConflict, ErrNotFound, ErrForbidden, ErrTooLarge) {
			t.Fatal(err)
		}
	}
}

func TestAnExportOfAnythingComesBackTheSame(t *testing.T) {
	for seed := range uint64(4) {
		if !longtest.Part(int(seed), 1, 4) {
			continue
		}
		clock := newMovingClock(sealedClock())
		s := openWords(t, filepath.Join(t.TempDir(), "random.db"), Options{Now: clock.Now})
		r := rand.New(rand.NewPCG(seed, 1))
		for range 4 {
			clock.Pass(time.Hour)
			randomly(t, s, r, 100)
		}
		clock.Pass(sealedClock().Sub(clock.Now()))
		if report := mustCheck(t, s, nil); !report.OK {
			t.Fatalf("seed %d: %+v, want OK", seed, report)
		}
		first := exported(t, s, ExportOptions{Credentials: true})
		for name, o := range map[string]ImportOptions{"kept": {}, "replaced": {OnConflict: ConflictReplace}} {
			copied := openWords(t, "", Options{Now: sealedClock})
			for range 2 {
				report, err := copied.Upkeep().Import(t.Context(), stream(first), &o)
				if err != nil || len(report.Conflicts) > 0 || report.Ignored > 0 || report.MissingLinks > 0 ||
					len(report.Warnings) > 0 {
					t.Fatalf("seed %d: %+v, %v", seed, report, err)
				}
			}
			if second := exported(t, copied, ExportOptions{Credentials: true}); !bytes.Equal(first, second) {
				t.Errorf("seed %d, %s: %s; got %v, want %v", seed, name, lineDiff(second, first), first, second)
			}
			if report := mustCheck(t, copied, nil); !report.OK {
				t.Errorf("seed %d, the copy: %+v, want OK", seed, report)
			}
			checkConsistency(t, copied)
		}
	}
}
