package souvenir_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// BenchmarkGetContext asks for contexts over 10,000 memories, half of them in a project, with all that a context can
// hold.
func BenchmarkGetContext(b *testing.B) {
	store := openBench(b, 5_000)
	memories := sentences(5_000)
	for i := range memories {
		memories[i].ProjectID = "apollo"
		switch {
		case i%100 < 10:
			memories[i].EventType, memories[i].State = souvenir.EventConversation, []string{"active", "completed"}[i%2]
		case i%100 == 10:
			memories[i].Classification = souvenir.ClassDo
		}
	}
	identity := souvenir.NewMemory{Content: "I am Mira.", EventType: souvenir.EventIdentity}
	memories = append(memories, identity)
	for _, rule := range []souvenir.RuleType{souvenir.RuleDo, souvenir.RuleDont} {
		memories = append(memories, souvenir.NewMemory{Content: strings.Repeat("a rule of the project\n", 100),
			EventType: souvenir.EventProjectRule, RuleType: rule, ProjectID: "apollo"})
	}
	ctx := context.Background()
	if _, err := store.AddMemories(ctx, memories, nil); err != nil {
		b.Fatal(err)
	}
	queries := sentences(500)
	for range 20 { // while the first searches go on disk, the index is loaded
		if _, err := store.GetContext(ctx, souvenir.ContextQuery{Query: queries[0].Content}); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		query souvenir.ContextQuery
	}{
		{"query", souvenir.ContextQuery{}},
		{"project", souvenir.ContextQuery{ProjectID: "apollo"}},
		{"budget", souvenir.ContextQuery{ProjectID: "apollo", TokenBudget: 2000}},
		{"newest", souvenir.ContextQuery{ProjectID: "apollo"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				q := c.query
				if c.name != "newest" {
					q.Query = strings.Join(strings.Fields(queries[i%len(queries)].Content)[:8], " ")
				}
				start := time.Now()
				got, err := store.GetContext(ctx, q)
				took = append(took, time.Since(start))
				if err != nil || got.Identity == nil || len(got.Related) == 0 && q.TokenBudget == 0 {
					b.Fatal(fmt.Sprint(got, err))
				}
			}
			reportMedian(b, took)
		})
	}
}
