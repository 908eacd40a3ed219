package souvenir_test

import (
	"context"
	"fmt"
	"log"

	"github.com/souvenir-ai/souvenir"
)

// A project has one todo document, and each edit of it leaves all else in it as it is.
func ExampleStore_CompleteTask() {
	ctx := context.Background()
	store, err := souvenir.Open(ctx, ":memory:", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	todo := "## Constitution\nTests first.\n\n## Spec\nA parser.\n\n## Plan\n\n## Tasks\n- [x] T1 read the standard\n- " +
		"[ ] T2 write the scanner\n\n## Gaps\n"
	if _, err := store.SetTodo(ctx, souvenir.NewTodo{ProjectName: "parser", Content: todo}); err != nil {
		log.Fatal(err)
	}
	done, err := store.CompleteTask(ctx, souvenir.TaskRef{ProjectName: "parser", TaskID: "T2"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s is done: %d of %d\n", done.Task.Text, done.Progress.Done, done.Progress.Total)

	_, err = store.CompleteTask(ctx, souvenir.TaskRef{ProjectName: "parser", TaskID: "T3"})
	fmt.Println(err)
	// Output:
	// write the scanner is done: 2 of 2
	// TaskRef.TaskID "T3" is not among the tasks; there are T2, T1
}

// A project has one rule of each type. Its former texts are revisions.
func ExampleStore_SetRule() {
	ctx := context.Background()
	store := open()
	defer store.Close()

	for _, content := range []string{"Write a test first.", "Write a test first.", "Write two tests first."} {
		rule, err := store.SetRule(ctx,
			souvenir.NewRule{ProjectName: "parser", Type: souvenir.RuleDo, Content: content})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(rule.Created, rule.Revision)
	}
	rules, err := store.Rules(ctx, souvenir.ProjectRef{Name: "parser"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rules.Do.Content, rules.Dont == nil)
	// Output:
	// true 1
	// false 1
	// false 2
	// Write two tests first. true
}

// An edit of one section leaves each byte of the others as it is, even while others edit those.
func ExampleStore_UpdateTodoSection() {
	ctx := context.Background()
	store := open()
	defer store.Close()
	todo := "## Constitution\nTests first.\n\n## Spec\n\n## Plan\n\n## Tasks\n\n## Gaps\n"
	if _, err := store.SetTodo(ctx, souvenir.NewTodo{ProjectName: "parser", Content: todo}); err != nil {
		log.Fatal(err)
	}

	stored, err := store.UpdateTodoSection(ctx, souvenir.ProjectRef{Name: "parser"}, souvenir.SectionTasks,
		souvenir.TodoSectionUpdate{Content: "- [ ] T1 write the scanner"})
	if err != nil {
		log.Fatal(err)
	}
	done, total := stored.Document.Progress()
	fmt.Println(stored.Revision, done, total)
	// Output: 2 0 1
}

func ExampleParseTodo() {
	document, err := souvenir.ParseTodo("## Constitution\n\n## Spec\n\n## Plan\n\n## Tasks\n- [x] T1 read\n" +
		"- [ ] T2 write\n\n## Gaps\n")
	if err != nil {
		log.Fatal(err)
	}
	for _, task := range document.Section(souvenir.SectionTasks).Checkboxes() {
		fmt.Println(task.ID, task.Text, task.Done)
	}
	// Output:
	// T1 read true
	// T2 write false
}
