// Todo is a session of spec-driven work on one document: constitution, spec, plan, tasks and gaps. A later agent,
// or one that works beside it, finds the open tasks.
//
//	go run ./examples/todo
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"

	"github.com/souvenir-ai/souvenir"
)

//go:embed clock.md
var document string

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "todo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer) error {
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		return err
	}
	defer store.Close()
	const project = "clock"

	// A constraint that must never be broken is a rule; work to do goes into the to-do document.
	if _, err := store.SetRule(ctx,
		souvenir.NewRule{ProjectID: project, Type: souvenir.RuleDont,
			Content: "Don't add a dependency without asking."}); err != nil {
		return err
	}
	if _, err := store.SetTodo(ctx, souvenir.NewTodo{ProjectID: project, Content: document}); err != nil {
		return err
	}
	if err := printOpen(ctx, w, store, "The plan is stored."); err != nil {
		return err
	}

	// The agent works through the tasks, ticks them off, and records the gaps that it found.
	for _, id := range []string{"T1", "T2"} {
		done, err := store.CompleteTask(ctx, souvenir.TaskRef{ProjectID: project, TaskID: id})
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "\nticked off: %s %s\n", done.Task.ID, done.Task.Text)
	}
	gaps := souvenir.TodoSectionUpdate{Content: "- Nobody said how the chime sounds at night."}
	if _, err := store.UpdateTodoSection(ctx, souvenir.ProjectRef{ID: project}, souvenir.SectionGaps, gaps); err != nil {
		return err
	}
	if err := printOpen(ctx, w, store, "\nThe session ends."); err != nil {
		return err
	}

	// A mistake gives an error that says what would be right; nothing changes.
	if _, err := store.CompleteTask(ctx, souvenir.TaskRef{ProjectID: project, TaskID: "T7"}); err != nil {
		fmt.Fprintf(w, "\nT7: %v\n", err)
	}

	// The next session starts with everything at once: rules and to-do come with the context, for any question.
	known, err := store.GetContext(ctx, souvenir.ContextQuery{ProjectID: project, Query: "go on with the clock"})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nThe next session begins.\nrule: %s\n", known.ProjectRules.Dont.Content)
	todo, err := souvenir.ParseTodo(known.ProjectRules.Todo.Content)
	if err != nil {
		return err
	}
	for _, section := range todo.Sections {
		if section.Section == souvenir.SectionGaps {
			fmt.Fprintf(w, "gaps:%s", section.Body)
		}
	}
	return nil
}

func printOpen(ctx context.Context, w io.Writer, store *souvenir.Store, heading string) error {
	todo, err := store.GetTodo(ctx, souvenir.ProjectRef{ID: "clock"})
	if err != nil {
		return err
	}
	done, total := todo.Document.Progress()
	fmt.Fprintf(w, "%s %d of %d tasks are done; open:\n", heading, done, total)
	for _, task := range todo.Document.Tasks {
		if !task.Done {
			fmt.Fprintf(w, "  %s %s\n", task.ID, task.Text)
		}
	}
	return nil
}
