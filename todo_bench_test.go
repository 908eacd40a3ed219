package souvenir_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/souvenir-ai/souvenir"
)

// todoOf makes a todo document with so many tasks.
func todoOf(tasks int) string {
	var b strings.Builder
	b.WriteString("## Constitution\n\nKeep it small.\n\n## Spec\n\nA service that remembers.\n\n## Plan\n\nFirst things " +
		"first.\n\n## Tasks\n\n")
	words := sentences(tasks)
	for i := range tasks {
		fmt.Fprintf(&b, "- [ ] T%d %s\n", i, words[i].Content)
	}
	b.WriteString("\n## Gaps\n\nnone\n")
	return b.String()
}

func BenchmarkParseTodo(b *testing.B) {
	content := todoOf(6000)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		if _, err := souvenir.ParseTodo(content); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompleteTask(b *testing.B) {
	for _, tasks := range []int{30, 600} {
		b.Run(fmt.Sprint(tasks, "tasks"), func(b *testing.B) {
			store := openBench(b, 1)
			ctx, n := context.Background(), 0
			var took []time.Duration
			for b.Loop() {
				if n%tasks == 0 {
					if _, err := store.SetTodo(ctx, souvenir.NewTodo{ProjectID: "p", Content: todoOf(tasks)}); err != nil {
						b.Fatal(err)
					}
				}
				start := time.Now()
				_, err := store.CompleteTask(ctx, souvenir.TaskRef{ProjectID: "p", TaskID: fmt.Sprint("T", n%tasks)})
				took = append(took, time.Since(start))
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			reportMedian(b, took)
		})
	}
}
