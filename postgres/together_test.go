package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/internal/postgres/pgtest"
)

// Concurrent calls share transactions. Each gets its own result, whatever happens to the others.
func TestCallsThatShareATransactionGetTheirOwnResults(t *testing.T) {
	address := pgtest.Address(t)
	s := open(t, address, &souvenir.Options{Quota: souvenir.Quota{Memories: 25}})
	owner := s.As(souvenir.Access{User: "owner"})
	shared, err := owner.AddProject(t.Context(), souvenir.NewProject{Name: "shared"})
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	const rounds = 20
	kinds := []struct {
		name   string
		access souvenir.Access
		ctx    context.Context
		memory souvenir.NewMemory
		want   error
		stored int
	}{
		{"ann", souvenir.Access{User: "ann"}, t.Context(), souvenir.NewMemory{Tags: []string{"a", "b"}}, nil, rounds},
		{"ben", souvenir.Access{User: "ben"}, t.Context(), souvenir.NewMemory{EventType: "note"}, nil, rounds},
		{"project", owner.Access(), t.Context(), souvenir.NewMemory{ProjectID: shared.ID}, nil, rounds},
		{"limited", souvenir.Access{User: "owner", Projects: []string{shared.ID}}, t.Context(),
			souvenir.NewMemory{Collection: "elsewhere"}, souvenir.ErrNotFound, 0},
		{"unknown collection", souvenir.Access{User: "cas"}, t.Context(), souvenir.NewMemory{Collection: "nowhere"},
			souvenir.ErrNotFound, 0},
		{"full", souvenir.Access{User: "dan"}, t.Context(), souvenir.NewMemory{}, nil, 25},
		{"ended", souvenir.Access{User: "ann"}, gone, souvenir.NewMemory{}, context.Canceled, 0},
		{"new project", souvenir.Access{User: "eve"}, t.Context(), souvenir.NewMemory{ProjectName: "fresh"}, nil, rounds},
	}
	stored := make([]int, len(kinds))
	var wg sync.WaitGroup
	for i, k := range kinds {
		calls := rounds
		if k.name == "full" {
			calls = 2 * rounds
		}
		wg.Go(func() {
			for n := range calls {
				m := k.memory
				m.Content = fmt.Sprintf("The %s of day %d is kept in a drawer.", k.name, n)
				a, err := s.As(k.access).AddMemory(k.ctx, m)
				switch {
				case k.name == "full" && n >= 25:
					if !errors.Is(err, souvenir.ErrTooLarge) {
						t.Errorf("%s, call %d: got %v, want %v", k.name, n, err, souvenir.ErrTooLarge)
					}
				case !errors.Is(err, k.want):
					t.Errorf("%s, call %d: got %v, want %v", k.name, n, err, k.want)
				case err == nil && (a.Content != m.Content || len(a.Tags) != len(m.Tags)):
					t.Errorf("%s, call %d: got the memory %q with %d tags, want %q", k.name, n, a.Content, len(a.Tags), m.Content)
				case err == nil:
					stored[i]++
				}
			}
		})
	}
	wg.Wait()
	for i, k := range kinds {
		if stored[i] != k.stored {
			t.Errorf("%s: got %d memories, want %d", k.name, stored[i], k.stored)
		}
		found := 0
		for m, err := range s.As(k.access).Memories(t.Context(), souvenir.MemoryList{}) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(m.Content, "The "+k.name+" of") {
				found++
			}
		}
		if found != k.stored {
			t.Errorf("%s: got %d memories when listed, want %d", k.name, found, k.stored)
		}
	}
	report, err := s.Upkeep().Check(t.Context(), nil)
	if err != nil || len(report.Findings) > 0 {
		t.Errorf("check: got %v, %v; want no problems", report.Findings, err)
	}
}
